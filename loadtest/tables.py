"""The tables of `./dev bench`."""

import platform
import statistics
import subprocess
import sys

import modes
import paced


def latencies(mode):
    return ("mean_us", "max_us") if mode in modes.HTTP2 else ("p50_us", "p99_us")


def median(rounds, figure):
    return statistics.median(each[figure] for each in rounds)


def ratio_to_nginx(costs, name):
    """Returns the ratio as text. Returns no text without nginx, or if nginx has used no tick of CPU in a short measurement."""
    return f"×{costs[name] / costs['nginx']:.2f}" if costs.get("nginx") else ""


def table(mode, results, instructions):
    """Returns the table of a mode. `instructions` has the instructions of a request by contestant, or is empty."""
    if mode in modes.PACED:
        return table_of_added(mode, results)
    costs = {name: median(rounds, "cpu_us") for name, rounds in results.items()}
    titles = ["CPU µs/request", "(min–max)", "to nginx", *(["instructions"] if instructions else []),
              *(name.replace("_us", " µs") for name in latencies(mode)), "requests/s"]
    lines = [f"\n{modes.TITLES[mode]}\n", f"| | {' | '.join(titles)} |", "|---|" + "---:|" * len(titles)]
    for name, rounds in results.items():
        each = [run["cpu_us"] for run in rounds]
        cells = [f"{costs[name]:.2f}", f"{min(each):.2f}–{max(each):.2f}", ratio_to_nginx(costs, name)]
        if instructions:
            cells.append(f"{instructions[name]:.0f}" if name in instructions else "")
        cells += [f"{median(rounds, figure):.0f}" for figure in (*latencies(mode), "rate")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def added(results, name, figure):
    """Returns by how much a figure is above that of the upstream alone. Both are of the same round, because machines drift."""
    return statistics.median(through[figure] - straight[figure] for through, straight in zip(results[name], results[paced.STRAIGHT]))


def table_of_added(mode, results):
    rate = median(results[paced.STRAIGHT], "rate")
    lines = [f"\n{modes.TITLES[mode]}: {rate:.0f} requests/s\n", "| | p50 µs | added | p99 µs | added | CPU µs/request |",
             "|---|---:|---:|---:|---:|---:|"]
    for name, rounds in results.items():
        cells = []
        for figure in latencies(mode):
            cells += [f"{median(rounds, figure):.0f}", "" if name == paced.STRAIGHT else f"{added(results, name, figure):.0f}"]
        cells.append("" if name == paced.STRAIGHT else f"{median(rounds, 'cpu_us'):.2f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def table_of_more(counts, results, instructions):
    """Returns a table of what a request costs more with many routes or rules than with one. `counts` is modes.ROUTES or modes.TENANTS."""
    one, *others = [mode for mode in counts if mode in results]
    lines = ["\n| more than with one | CPU µs/request | instructions |", "|---|---:|---:|"]
    for mode in others:
        for name in results[mode]:
            more = statistics.median(many["cpu_us"] - few["cpu_us"] for many, few in zip(results[mode][name], results[one][name]))
            executed = instructions.get(mode, {}).get(name), instructions.get(one, {}).get(name)
            cell = f"{executed[0] - executed[1]:+.0f}" if None not in executed else ""
            lines.append(f"| {mode} {name} | {more:+.2f} | {cell} |")
    return "\n".join(lines)


def version_of(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip().splitlines()[0]


def describe_machine(stage, options):
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    versions = [version_of(command) for command in (["nginx", "-v"], ["haproxy", "-v"], ["nghttpx", "--version"], [stage.weir, "version"])]
    pinning = (f"proxy on CPU {stage.proxy_cpu}, load, upstream and Redis on CPU {stage.load_cpu}"
               if stage.load_cpu is not None else "nothing pinned")
    return (f"{model}, {platform.system()} {platform.release()}; {'; '.join(versions)}\n"
            f"./dev bench {' '.join(sys.argv[3:])}: {options.rounds} rounds of {options.seconds} s, "
            f"{options.connections} keep-alive connections, one worker each; {pinning}")


def all_of(results, instructions):
    """Returns all tables. `results` is {mode: {contestant: [one measurement a round]}}."""
    texts = [table(mode, measured, instructions.get(mode, {})) for mode, measured in results.items()]
    for counts in (modes.ROUTES, modes.TENANTS):
        if sum(mode in results for mode in counts) > 1:
            texts.append(table_of_more(counts, results, instructions))
    return "\n".join(texts)
