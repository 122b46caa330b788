# Sourced by the scripts beside it, behind ../cli/expect.sh.

# serve ARGUMENT...: starts the stub; its URL is in $url, what it heard in heard.jsonl.
serve() {
    stop_server
    rm -f port
    python3 "$scripts/stub.py" port --log heard.jsonl "$@" &
    server=$!
    within_a_minute [ -f port ] || { echo "no server after a minute"; exit 1; }
    url=http://127.0.0.1:$(cat port)
}

server=
stop_server() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    server=
}
trap 'stop_server; leave' EXIT

# heard EXPRESSION WANTED: of what the server heard, as lists `requests`, `ends` and `gone` of a line each.
heard() {
    found=$(of_heard "$1")
    same "$found" "$2" "heard: $1"
}
hears() { [ "$(of_heard "$1")" = "$2" ]; }
of_heard() {
    python3 - "$1" <<'END'
import json, sys
lines = [json.loads(line) for line in open('heard.jsonl')]
requests = [line for line in lines if 'body' in line]
prompts = [line['body'].get('prompt') for line in requests]
ends = [line for line in lines if 'ended' in line]
gone = [line for line in lines if 'gone' in line]
headers = [line['headers'] for line in lines if 'headers' in line]
print(eval(sys.argv[1]))
END
}
