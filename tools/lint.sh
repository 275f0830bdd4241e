#!/usr/bin/env bash
# Runs clang-format, clang-tidy, shellcheck and tools/english.py on the named files, or on the whole tree. Called by ./dev lint, which has
# configured build-lint, where clang-tidy reads compile_commands.json. With --quick, clang-tidy skips the tests and sources that have not
# changed recently. It then runs only checks for faults that compilers and sanitizers miss.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# Checks of moves and copies, lifetimes and conversions. Every check reads all headers of Asio again, so each one costs
# time.
readonly QUICK_CHECKS="-*,bugprone-dangling-handle,bugprone-fold-init-type,bugprone-incorrect-roundings,\
bugprone-move-forwarding-reference,bugprone-signed-char-misuse,bugprone-unhandled-self-assignment,bugprone-unused-raii,\
bugprone-use-after-move,cppcoreguidelines-slicing,modernize-use-override,performance-for-range-copy,\
performance-inefficient-vector-operation,performance-move-const-arg,performance-noexcept-move-constructor,\
performance-unnecessary-copy-initialization,performance-unnecessary-value-param"

faults=0
checks=()
tracked() { git ls-files --cached --others --exclude-standard -- "$@"; }

verdict() {
  if [ "$2" = 0 ]; then echo "ok    $1"; else echo "FAULT $1"; faults=$((faults + 1)); fi
}

check_layout() {
  [ "$#" -gt 0 ] || return 0
  clang-format --dry-run -Werror "$@"
  verdict "clang-format: $# files" $?
}

# Headers are checked through the sources that include them (HeaderFilterRegex in .clang-tidy).
check_code() {
  [ "$#" -gt 0 ] || return 0
  timeout "${TIDY_SECONDS:-1800}" run-clang-tidy -quiet "${checks[@]}" -p build-lint -j "${JOBS:-$(nproc)}" "$@" 2>/dev/null |
    grep -vE '^clang-tidy-?[0-9]* |^$'
  verdict "clang-tidy: $# files" "${PIPESTATUS[0]}"
}

check_scripts() {
  [ "$#" -gt 0 ] || return 0
  shellcheck "$@"
  verdict "shellcheck: $# files" $?
}

# English of Markdown, comments and page scripts: length of lines and sentences, and how sentences begin.
check_english() {
  [ "$#" -gt 0 ] || return 0
  python3 tools/english.py "$@"
  verdict "english: $# files" $?
}

# Lists the sources that none of the last forty commits has changed except by moving. Such sources were checked at
# their last change.
long_unchanged() {
  tracked 'src/*.cpp' | sort | comm -23 - <(git log -n 40 -M90% --diff-filter=AM --name-only --format= -- 'src/*.cpp' | sort -u)
}

main() {
  local quick='' skipped=()
  if [ "${1:-}" = --quick ]; then
    quick=yes checks=("-checks=$QUICK_CHECKS")
    shift
  fi
  if [ "$#" -eq 0 ]; then
    mapfile -t files < <(tracked '*.hpp' '*.cpp' '*.sh' '*.bash' dev .ci/run 'packaging/debian/p*' \
      '*.md' '*.lua' 'src/*.js')
    [ -z "$quick" ] || mapfile -t skipped < <(long_unchanged)
    [ "${#files[@]}" -gt 0 ] || { echo "lint: git lists no files here" >&2; return 1; }
  else
    files=("$@")
  fi
  local layout=() code=() scripts=() english=()
  for file in "${files[@]}"; do
    case $file in
      *.md | *.lua | *.js | *.hpp | *.cpp) english+=("$file") ;;
    esac
    case $file in
      *.md | *.lua | *.js) ;;
      *.hpp) layout+=("$file") ;;
      tests/*.cpp)
        layout+=("$file")
        [ -n "$quick" ] || code+=("$file")
        ;;
      *.cpp)
        layout+=("$file")
        [[ " ${skipped[*]} " == *" $file "* ]] || code+=("$file")
        ;;
      *) scripts+=("$file") ;;
    esac
  done
  check_layout "${layout[@]}"
  check_code "${code[@]}"
  check_scripts "${scripts[@]}"
  check_english "${english[@]}"
  [ "$faults" = 0 ]
}

main "$@"
