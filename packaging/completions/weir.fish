# Completion of weir(8) for fish. What there is to complete weir says itself, so it never lacks a command.

function __weir_commands
    weir --help 2>/dev/null | string match -rg '^  ([a-z][a-z-]*) +(.*)$' | paste -d '\t' - -
end

function __weir_options
    set -l words (commandline -opc)
    test (count $words) -gt 1; or return
    weir $words[2] --help 2>/dev/null | string match -rg '^  -.*(--[a-z-]+)'
end

complete -c weir -f
complete -c weir -n __fish_use_subcommand -a '(__weir_commands)'
complete -c weir -n 'not __fish_use_subcommand' -a '(__weir_options)'
complete -c weir -s c -l config -r -F
