#!/bin/sh
# Servers that no client should fall for: one clear line, bounded memory and time, exit code 1.
. "$(dirname "$0")/../cli/expect.sh"
. "$scripts/stub.sh"

printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n0,5,1\n' >two.csv
serve
# KiB of addresses. A sanitizer's shadow of the memory takes terabytes of them.
most=400000
{ (ulimit -v $most && "$inflight" help >/dev/null); } 2>/dev/null || most=unlimited

# says_of KIND PATTERN [ARGUMENT...]: what the server does, and what is said of it. The program has $most.
says_of() {
    kind=$1
    pattern=$2
    shift 2
    expect 1 "$pattern" sh -c 'ulimit -v "$1"; shift; exec timeout 60 "$@"' sh $most "$inflight" replay two.csv -s "$url" \
        -o out --model "$kind" -q "$@"
    same "$(columns out/requests.csv status | sort -u)" "$status" "$kind"
    awk -F, 'NR == 1 { n = NF } NF < n { exit 1 }' out/requests.csv || complain "$kind: fields of requests.csv"
}

status=failed
says_of redirect 'none of 2 requests finished; request 0: HTTP 307: a redirect, which is not followed'
says_of endless_headers 'more than 64 KiB of headers'
says_of endless_line 'a line of more than 1024 KiB'
says_of endless_line 'a line of more than 16 KiB' --max-event 16
says_of endless_event 'an event of more than 1024 KiB'
says_of endless_comments 'an answer of more than 1000 KiB' --max-answer 1000
says_of endless_tokens 'more tokens than were asked for'
says_of empty_chunks 'events in the stream'
says_of broken_json 'an event that is no JSON'
says_of deep_json 'an event that is no JSON: maximum parsing depth reached'
says_of no_choices 'a chunk without a list `choices`'
says_of error_inside 'the server ended the stream: the engine died'
says_of cut 'transfer closed with outstanding read data remaining'
says_of unfinished 'the stream ended after 1 chunks without a finish_reason'
says_of reset 'Connection reset by peer'
says_of no_http 'HTTP/0.9'
says_of whole_json 'content-type is "application/json", expected text/event-stream'
says_of silent 'no byte for 0.5 s' --stall 0.5
says_of drip 'not over after 1 s' --timeout 1
says_of engine_dead 'HTTP 500: Internal Server Error'
status=rejected
says_of wrong 'HTTP 400: max_tokens=5000 cannot be greater, "really"'
status=shed
says_of overloaded 'HTTP 503: too many queued requests'

# A server that is not there, and one that is not ready yet.
stop_server
expect 1 "Couldn't connect to server" "$inflight" replay two.csv -s "$url" -o out -q
mv port old
(
    sleep 1
    exec python3 - "$(cat old)" <<'END'
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'{"data": []}')
    def log_message(self, *a): pass
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
END
) &
server=$!
expect 1 'names no model, expected --model to say which' "$inflight" replay two.csv -s "$url" -o out -q --wait 10
finish
