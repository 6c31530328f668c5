#!/usr/bin/env bash
# Shows what the store does, on sessions of agents and an archive that ship with it, and leaves a store to
# play with. LINEAGE names the program, DEMO the folder; a demonstration that is there
# is replaced. LINEAGE_BENCH names the benchmark program; DEMO_LENGTH and DEMO_ROUNDS say how much it measures.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
lineage=${LINEAGE:-$root/.bin/lineage}
bench=${LINEAGE_BENCH:-$root/.bin/lineage-bench}
demo=${DEMO:-$root/.bin/demo}
mkdir -p -- "$(dirname -- "$demo")"
demo=$(cd -- "$(dirname -- "$demo")" && pwd -P)/$(basename -- "$demo")

# Only a folder that this script made is removed: it has the marker.
marker=.lineage-demonstration
if [[ -e $demo && ! -f $demo/$marker ]]; then
	echo "$demo is there and is no demonstration: remove it, or set DEMO" >&2
	exit 1
fi
rm -rf -- "$demo"
mkdir -p -- "$demo"
cd -- "$demo"
: > "$marker"

if [[ -t 1 ]]; then bold=$'\e[1m' plain=$'\e[0m'; else bold= plain=; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
exec 3>&1
export COLUMNS=100
# run shows a command of lineage and runs it.
run() { show lineage "$@"; "$lineage" "$@"; }
# show prints a command line, on several lines if it is long.
show() {
	local line='$' word
	for word in "$@"; do
		if [[ $word == *[!a-zA-Z0-9_./:@{}~-]* ]]; then word="'$word'"; fi
		if ((${#line} + ${#word} > COLUMNS - 3)); then
			printf '%s \\\n' "$line" >&3
			line='   '
		fi
		line+=" $word"
	done
	printf '%s\n' "$line" >&3
}

# The sessions of a user who is not there: nobody's own are touched.
unset LINEAGE_STORE LINEAGE_THREAD CLAUDE_CONFIG_DIR CODEX_HOME COPILOT_HOME QWEN_HOME GEMINI_CLI_HOME OPENCLAW_STATE_DIR PI_CODING_AGENT_DIR OPENCODE_DB XDG_DATA_HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR
export HOME=$demo/home
samples=$root/lineage/archive/testdata
put() {
	mkdir -p "$HOME/$1"
	cp -R "${@:2}" "$HOME/$1/"
}
put .claude/projects/-home-ada-spotter "$samples"/claude-code-spotter/short.jsonl
put .codex/sessions/2026/11/27 "$samples"/agents/codex/rollout-*.jsonl
put .copilot/session-state "$samples"/agents/copilot/*-*
put .qwen/projects/-work/chats "$samples"/agents/qwen/*-*.jsonl
put .pi/agent/sessions/--work-- "$samples"/agents/pi/*.jsonl

say 'The sessions of the coding agents on this machine come in by themselves'
run init
run follow --once
run thread list --limit 5
run usage --by agent

say 'Look at one, and go on from any of its messages in another agent'
run thread use 01a21e42-a82f-7492-bf98-cb89e6a74924 > /dev/null
run log --last 3
run resume :6 --agent pi --dir "$demo" 2> /dev/null
run follow --once
run thread list --limit 2

say 'An archive of 100 conversation trees'
run import "$root/testdata/demo/oasst-trees.jsonl.gz"
say 'One of the conversations, with its branches'
run thread set 8d133a5a-f25c-4738-ae22-8a4901dfc3db --title 'Symbolic links' > /dev/null
run thread use 'symbolic links'
run branch mine --switch
run checkpoint before
run tree

say 'Three subagents, each with the whole history, and what they report'
for model in small-1 small-2 large-3; do
	id=$(run subagent --model "$model" --task 'What goes wrong most often with symbolic links?')
	case $model in
	small-1) answer='The order: the target comes first, then the name of the link.' ;;
	small-2) answer='Relative targets: they are taken from where the link is, not from where you are.' ;;
	*) answer='Links whose target was moved or deleted: find -xtype l lists them.' ;;
	esac
	run append "$id" "$answer" --role assistant --model "$model" --durability normal > /dev/null
	run return "$id" > /dev/null
done
run log mine --last 3

say 'A question asked differently, and the answers merged'
run edit mine:1 'Explain the parameters of ln -s, with one example.' --branch clearer > /dev/null
run append clearer 'ln -s TARGET NAME: for example, ln -s /opt/app-1.2 /opt/app.' --role assistant --model large-3 > /dev/null
run provenance clearer:1
run merge clearer mine
run diff before mine
run tree

say 'What was said about it, in all conversations'
run search 'symbolic AND link*' --limit 3

say 'A thousand forks: the size on disk, and the size of copies'
run fork mine --count 1000 > /dev/null
run pack
run stats
run verify --deep

length=${DEMO_LENGTH:-1000}
say "What a fork takes beside the documented SQL schema on SQLite, at $length messages of 500 bytes"
compare=(--workloads history --sizes "$length" --rounds "${DEMO_ROUNDS:-5}" --systems lineage,sqlite)
show lineage-bench "${compare[@]}"
"$bench" "${compare[@]}" > bench.txt
awk '/^fork/ { on = 1 } on && /^$/ { exit } on' bench.txt

say 'The store is yours to play with'
cat <<END
  cd $demo
  alias lineage=$lineage
  lineage serve --open               all of it in a browser, live
  lineage thread list                the conversations
  lineage tree                       the one of the demonstration; lineage thread use ID for others
  lineage fork mine --count 1000     a thousand forks more, and lineage stats again
  lineage rewind @{2}                two messages back, on a new branch
  lineage resume --agent codex       the command that goes on in Codex
  lineage export -o links.html       a page to keep
  lineage project sqlite:chats.db    plain SQL tables
  lineage help                       everything else; docs/cli.md has it in one page
  lineage follow                     your own sessions, in ~/.lineage
END

# On a terminal the page is served until ctrl-C. Without one it is only checked that it answers.
if [[ -t 1 ]]; then
	say 'And to look at: open this link in a browser; ctrl-C ends'
	trap : INT
	run serve || true
	exit
fi
say 'And to look at'
show lineage serve
: > serve.out
"$lineage" serve --listen 127.0.0.1:0 > serve.out 2> serve.err &
server=$!
trap 'kill "$server" 2> /dev/null || true; wait "$server" || true' EXIT
until link=$(grep -o 'http://.*' serve.out); do
	kill -0 "$server"
	sleep 0.1
done
address=${link#http://}
address=${address%%/*}
exec 4<> "/dev/tcp/127.0.0.1/${address##*:}"
printf 'GET /login HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$address" >&4
read -r -t 120 answer <&4
exec 4>&-
if [[ $answer != *' 200 '* ]]; then
	echo "the page answers: $answer" >&2
	exit 1
fi
printf '%s\nthe page answers; on a terminal it stays until ctrl-C\n' "${link%#*}"
