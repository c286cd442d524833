"use strict";
(() => {
  const all = (selector, from = document) => Array.from(from.querySelectorAll(selector));

  // Filters: a row stays when it holds every word typed, its severity is ticked and the chosen stack has it.
  for (const form of all("form[data-filter]")) {
    const target = document.getElementById(form.dataset.filter);
    if (!target) continue;
    const rows = all("[data-row]", target).map(node => ({ node, text: node.textContent.toLowerCase() }));
    const search = form.querySelector("input[type=search]");
    const apply = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const boxes = all("input[name=severity]", form);
      const wanted = new Set(boxes.filter(box => box.checked).map(box => box.value));
      const choice = form.querySelector("select[name=stack]");
      let shown = 0;
      for (const { node, text } of rows) {
        const keep = words.every(word => text.includes(word))
          && (!boxes.length || wanted.has(node.dataset.severity))
          && (!choice || !choice.value || (node.dataset.stacks || "").split("|").includes(choice.value));
        node.hidden = !keep;
        if (keep) shown += 1;
      }
      form.querySelector("output").textContent = `${shown} of ${rows.length} shown`;
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", event => event.preventDefault());
    search.addEventListener("keydown", event => {
      if (event.key === "Escape") { search.value = ""; apply(); }
    });
    form.hidden = false;
    apply();
  }

  // "/" goes to the first filter, as in many tools.
  document.addEventListener("keydown", event => {
    const field = document.querySelector("form[data-filter]:not([hidden]) input[type=search]");
    if (event.key === "/" && field && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      field.focus();
    }
  });

  // Sorting: a button in each column head; numbers as numbers.
  for (const table of all("table[data-sortable]")) {
    const body = table.tBodies[0];
    all("thead th", table).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        all("thead th", table).forEach(other => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = row => row.cells[column].textContent.trim();
        const order = new Intl.Collator("en", { numeric: true });
        body.append(...Array.from(body.rows).sort((a, b) => (up ? 1 : -1) * order.compare(key(a), key(b))));
      });
    });
  }

  // The picture shows the roles of one stack; a switch where they differ.
  for (const form of all("form[data-switch]")) {
    const figure = form.closest("figure");
    const select = form.querySelector("select");
    select.addEventListener("change", () => {
      for (const node of all(".n", figure)) {
        const role = (node.dataset.r || "").split(" ")[Number(select.value)];
        for (const name of Array.from(node.classList)) if (name.startsWith("r-")) node.classList.remove(name);
        node.classList.add(`r-${role}`);
        const label = node.querySelector(".role");
        if (label.textContent !== "program") label.textContent = role;
      }
      figure.querySelector("[data-stack-name]").textContent = select.selectedOptions[0].textContent;
    });
    form.hidden = false;
  }

  addEventListener("beforeprint", () => all("details").forEach(node => { node.open = true; }));
})();
