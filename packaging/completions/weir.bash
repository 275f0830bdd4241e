# shellcheck shell=bash
# Completion of weir(8) for bash. What there is to complete weir says itself, so it never lacks a command.

# What comes after OPTION in the help text on standard input: FILE, ADDR, …; nothing where it takes no value.
_weir_value() {
  awk -v option="$1" '$1 ~ /^-/ && $2 ~ /^[A-Z]+$/ && $2 != "REQUIRED" && index("," $1 ",", "," option ",") { print $2 }'
}

# The commands and options of the help text on standard input.
_weir_words() {
  sed -n -e '/^Subcommands:/,$s/^  \([a-z][a-z-]*\)\( .*\)\{0,1\}$/\1/p' -e 's/^ \{2,8\}\(-[a-zA-Z],\)\{0,1\}\(--[a-z-]*\).*/\2/p'
}

_weir() {
  local weir=$1 word=$2 before=$3 command=() help at
  for ((at = 1; at < COMP_CWORD; ++at)); do  # weir keys show: words up to the first option, as far as they are commands
    ((${#command[@]} < 2)) || break
    [[ ${COMP_WORDS[at]} =~ ^[a-z][a-z-]*$ ]] || break
    "$weir" "${command[@]}" "${COMP_WORDS[at]}" --help >/dev/null 2>&1 || break
    command+=("${COMP_WORDS[at]}")
  done
  help=$("$weir" "${command[@]}" --help 2>/dev/null) || return 0
  case $(_weir_value "$before" <<<"$help") in
    FILE)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      ;;
    "")
      if [[ $word != -* ]] && grep -qE '^  ([a-z]* LOG|FILE FILE) ' <<<"$help"; then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
      fi
      mapfile -t COMPREPLY < <(compgen -W "$(_weir_words <<<"$help")" -- "$word")
      ;;
  esac
}

complete -F _weir weir
