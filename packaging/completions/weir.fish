# Completion of weir(8) for fish. What there is to complete weir says itself, so it never lacks a command.

# weir keys show: words up to the first option, as far as they are commands.
function __weir_help
    set -l words (commandline -opc)
    set -l command
    for word in $words[2..-1]
        string match -rq '^[a-z]' -- $word; and test (count $command) -lt 2; or break
        weir $command $word --help >/dev/null 2>&1; or break
        set -a command $word
    end
    weir $command --help 2>/dev/null
end

function __weir_commands
    __weir_help | sed -n '/^Subcommands:/,$p' | string match -rg '^  ([a-z][a-z-]*) +(.*)$' | paste -d '\t' - -
end

function __weir_options
    __weir_help | string match -rg '^ {2,8}(?:-[a-zA-Z],)?(--[a-z-]+)'
end

function __weir_logs
    __weir_help | string match -rq '^  (logs LOG|FILE FILE) '
end

complete -c weir -f
complete -c weir -a '(__weir_commands)'
complete -c weir -a '(__weir_options)'
complete -c weir -s c -l config -r -F
complete -c weir -n __weir_logs -F
