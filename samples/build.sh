#!/usr/bin/env bash
# Builds the sample programs: samples/build.sh [OUTPUT FOLDER] (default: the folder of this script).
# Needs MinGW-w64 GCC for x86_64 and i686, ld.lld and llvm-dlltool. ld.lld links because GNU ld writes no delay-import
# directory. The same tools give the same bytes: no timestamps, no debug data, no path ends up in a file.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "${1:-$here}"
out=$(cd "${1:-$here}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here/src"

cflags=(-Os -std=c11 -Wall -Wextra -Werror -fno-ident -fno-asynchronous-unwind-tables)
system=(-lmingw32 -lgcc -lmoldname -lmingwex -lmsvcrt -lkernel32)
target=x86_64-w64-mingw32

# part NAME: the path of one of GCC's start files or libraries
part() { "$target-gcc" -print-file-name="$1"; }

# compile SOURCE: the path of its object file
compile() {
  local object
  object="$work/$target-$(basename "$1").o"
  "$target-gcc" "${cflags[@]}" -c "$1" -o "$object"
  echo "$object"
}

# import_library DLL-STEM: makes an import library of def/STEM.def, prints its path
import_library() {
  local library="$work/$1.a" machine=i386:x86-64 kill_at=()
  if [ "$target" = i686-w64-mingw32 ]; then machine=i386 kill_at=(-k); fi
  llvm-dlltool -m "$machine" ${kill_at[@]+"${kill_at[@]}"} -d "def/$1.def" -l "$library"
  echo "$library"
}

# link OUTPUT START-FILE ARGUMENT…: the last arguments are objects, libraries and linker options
link() {
  local output="$out/$1" start="$2" emulation=i386pep
  shift 2
  if [ "$target" = i686-w64-mingw32 ]; then emulation=i386pe; fi
  mkdir -p "$(dirname "$output")"
  ld.lld -m "$emulation" -s --no-insert-timestamp -o "$output" "$(part "$start")" "$(part crtbegin.o)" "$@" \
    -L"$(dirname "$(part libgcc.a)")" -L"$(dirname "$(part libmingw32.a)")" "${system[@]}" "$(part crtend.o)"
}

# program OUTPUT SOURCE DLL-STEM…
program() {
  local output="$1" inputs=()
  inputs+=("$(compile "$2")")
  shift 2
  for stem in "$@"; do inputs+=("$(import_library "$stem")"); done
  link "$output" crt2.o "${inputs[@]}" ${options[@]+"${options[@]}"}
}

# stand_in DLL (SOURCE | DLL-STEM)…: a DLL that exports what def/ says, and imports what the sources name
stand_in() {
  local dll="$1" inputs=()
  shift
  for input in "$@"; do
    case "$input" in
      *.c | *.s) inputs+=("$(compile "$input")") ;;
      *) inputs+=("$(import_library "$input")") ;;
    esac
  done
  link "$dll" dllcrt2.o --shared -e DllMainCRTStartup "$work/stand-in.o" "def/$(basename "${dll%.dll}").def" "${inputs[@]}"
}

options=()
program plain.exe plain.c
program by-name.exe by-name.c
program driver.exe driver.c nvcuda
program not-exported.exe not-exported.c nvcuda
program gemm.exe gemm.c cudart64_12 cublas64_12
program conv.exe conv.c cudart64_12 cudnn64_9
program gemm-and-conv.exe gemm-and-conv.c cudart64_12 cublas64_12 cudnn64_9
program fft.exe fft.c cudart64_12 cufft64_11
options=(-ldelayimp -Xlink=-delayload:cufft64_11.dll)
program delay-load.exe delay-load.c cudart64_12 cublas64_12 cufft64_11
options=()

"$target-windres" stand-in.rc -o "$work/stand-in.o"
stand_in cudart64_12.dll cudart-stand-in.c
for folder in ppo-gemm image-conv; do
  mkdir -p "$out/$folder"
  cp "$out/cudart64_12.dll" "$out/$folder/"
  stand_in "$folder/c10.dll" torch-stand-in.c
  stand_in "$folder/c10_cuda.dll" torch-stand-in.c c10_cuda-needs.c c10-thunks.s c10 cudart64_12
  stand_in "$folder/torch_cpu.dll" torch-stand-in.c torch_cpu-needs.c c10-thunks.s c10
  stand_in "$folder/torch_cuda.dll" torch-stand-in.c torch_cuda-needs.c c10-thunks.s c10_cuda-thunks.s \
    c10 c10_cuda torch_cpu cudart64_12 cublas64_12 cublasLt64_12 cudnn64_9 cufft64_11 cusparse64_12
done
options=("$(compile ppo-trainer-thunks.s)")
program ppo-gemm/ppo-trainer.exe ppo-trainer.c torch_cpu torch_cuda
options=("$(compile image-model-thunks.s)")
program image-conv/image-model.exe image-model.c torch_cpu torch_cuda
options=()

target=i686-w64-mingw32
program x86-driver.exe x86-driver.c nvcuda-x86

# The tools go into the record as comments, which sha256sum skips: other versions may give other bytes.
{
  for target in x86_64-w64-mingw32 i686-w64-mingw32; do echo "# $("$target-gcc" --version | head -n 1)"; done
  echo "# $(ld.lld --version)"
  cd "$out"
  find . -name '*.exe' -o -name '*.dll' | sed 's|^\./||' | sort | xargs sha256sum
} >"$work/sums"
mv "$work/sums" "$out/SHA256SUMS"
