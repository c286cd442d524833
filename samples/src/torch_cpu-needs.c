/* torch_cpu.dll: c10.dll. */
void c10_torch_check_fail(void);
void (*const needs[])(void) = {c10_torch_check_fail};
