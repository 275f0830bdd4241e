# shellcheck shell=bash
# Completion of weir(8) for bash. What there is to complete weir says itself, so it never lacks a command.

# What comes after OPTION in the help text on standard input: FILE, ADDR, …; nothing where it takes no value.
_weir_value() {
  awk -v option="$1" '$1 ~ /^-/ && $2 ~ /^[A-Z]+$/ && $2 != "REQUIRED" && index("," $1 ",", "," option ",") { print $2 }'
}

_weir() {
  local weir=$1 word=$2 before=$3 command=() help
  ((COMP_CWORD < 2)) || command=("${COMP_WORDS[1]}")
  help=$("$weir" "${command[@]}" --help 2>/dev/null) || return 0
  case $(_weir_value "$before" <<<"$help") in
    FILE)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      ;;
    "")
      mapfile -t COMPREPLY < <(compgen -W "$(sed -n -e 's/^  \([a-z][a-z-]*\)\( .*\)\{0,1\}$/\1/p' \
        -e 's/^  -.*\(--[a-z-]*\).*/\1/p' <<<"$help")" -- "$word")
      ;;
  esac
}

complete -F _weir weir
