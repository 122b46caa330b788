/* Requests of the window, and the life of one. */

const MOST_DOTS = 2500, SLOWEST = 100;
const REQUEST_METRICS = [
    'e2e_s', 'ttft_s', 'tpot_s', 'queue_s', 'stalled_s', 'max_itl_s', 'normalized_latency_s', 'prompt_tokens',
    'output_tokens', 'cached_tokens', 'preemptions'
];

/* Rows whose time between arrival and end overlaps the window. */
function requestsIn(point, from, to) {
    const requests = requestsOf(point), chosen = [];
    for (let i = 0; requests && i < requests.n; i++)
        if (!state.hidden.has(requests.status[i]) && requests.arrival_s[i] <= to &&
            requests.arrival_s[i] + (requests.e2e_s[i] || 0) >= from)
            chosen.push(i);
    return chosen;
}

/* Of many, every k-th and those with the largest values. */
function thinned(chosen, value) {
    if (chosen.length <= MOST_DOTS) return {chosen, note: ''};
    const every = Math.ceil(chosen.length / (MOST_DOTS - SLOWEST));
    const largest = [...chosen].sort((a, b) => (value(b) || 0) - (value(a) || 0)).slice(0, SLOWEST);
    const kept = new Set([...chosen.filter((_, i) => i % every === 0), ...largest]);
    return {chosen: chosen.filter((i) => kept.has(i)), note: `; drawn are one in ${every}, and the ${SLOWEST} largest`};
}

/* ---- statuses: a mark each ---- */

const FINISHED = 0;
/* Of finished, rejected, failed, aborted, timed_out and shed: a series of chart.js with its shape and colour. */
const STATUS_STYLES = [0, 4, 2, 3, 1, 5], HOLLOW_STATUS = 5;

const statusNames = (run) => run.requests.statuses.map((name) => name.replace(/_/g, ' '));

const statusOf = (requests, i) => statusNames(here().run)[requests.status[i]];

/* How many requests of a point have each status. */
function statusCounts(point) {
    const requests = requestsOf(point), counts = new Array(STATUS_STYLES.length).fill(0);
    for (let i = 0; requests && i < requests.n; i++) counts[requests.status[i]]++;
    return counts;
}

/* Those that there are, as boxes to untick; nothing where all requests have one status. */
function statusBoxes(redraw) {
    const counts = statusCounts(here()), there = counts.map((n, status) => status).filter((status) => counts[status]);
    if (there.length < 2) return [];
    const box = (status) => {
        const made = tick(
            `status-${status}`, ` ${statusNames(here().run)[status]} (${counts[status]})`, !state.hidden.has(status),
            (on) => {
                state.hidden[on ? 'delete' : 'add'](status);
                redraw();
            });
        made.insertBefore(
            svg('svg', {viewBox: '0 0 12 12', width: 12, height: 12, class: 'mark', 'aria-hidden': 'true'},
                mark(STATUS_STYLES[status], 6, 6, 4, status === HOLLOW_STATUS)),
            made.lastChild);
        return made;
    };
    return [el('fieldset', {id: 'statuses', class: 'controls'}, el('legend', {}, 'status'), there.map(box))];
}

function requestText(requests, i, metric) {
    return `request ${requests.request_id[i]}: ${statusOf(requests, i)}, arrives at ${
               digits(requests.arrival_s[i])} s\n${requests.prompt_tokens[i]} + ${requests.output_tokens[i]} tokens\n` +
        `${withUnit(metric)}: ${shown(metric, requests[metric][i])}`;
}

/* ---- a life ---- */

const PHASES = [
    ['queue_s', 'in the queue', 'var(--wait)'], ['prefill_s', 'prefill', 'var(--c1)'],
    ['decode_s', 'decode', 'var(--c0)'], ['stalled_s', 'stalled', 'var(--stall)']
];

/* The queue, until the first token, until the last: what a request came to before it left. */
function lifeSpans(requests, i) {
    const arrival = requests.arrival_s[i];
    return [
        [arrival, arrival + requests.queue_s[i], 'var(--wait)', 'in the queue'],
        [arrival + requests.queue_s[i], arrival + requests.ttft_s[i], 'var(--c1)', 'until the first token'],
        [arrival + requests.ttft_s[i], arrival + requests.e2e_s[i], 'var(--c0)', 'until the last token']
    ].filter(([from, to]) => to >= from);
}

function lifeBars(requests, i, width) {
    const spans = lifeSpans(requests, i),
          [first, last] = [requests.arrival_s[i], requests.arrival_s[i] + requests.e2e_s[i]], room = width - 110;
    const toX = (t) => 100 + room * (t - first) / (last - first || 1);
    let at = 0;
    const shares = PHASES.map(([name, text, fillWith]) => {
        const part = requests[name][i] / requests.e2e_s[i] * room,
              bar =
                  svg('rect', {x: 100 + at, y: 40, width: Math.max(0, part), height: 20, fill: fillWith},
                      svg('title', {}, `${text}: ${seconds(requests[name][i])}`));
        at += part;
        return bar;
    });
    return svg(
        'svg', {
            viewBox: `0 0 ${width} 84`,
            height: 84,
            preserveAspectRatio: 'xMinYMid',
            role: 'img',
            'aria-label': PHASES.map(([name, text]) => `${text} ${seconds(requests[name][i])}`).join(', ')
        },
        svg('text', {x: 92, y: 25, 'text-anchor': 'end'}, 'when'),
        svg('text', {x: 92, y: 54, 'text-anchor': 'end'}, 'where it went'),
        spans.map(
            ([from, to, fillWith, text]) => svg(
                'rect', {x: toX(from), y: 11, width: Math.max(0.5, toX(to) - toX(from)), height: 20, fill: fillWith},
                svg('title', {}, `${text}: ${seconds(to - from)}`))),
        shares, svg('text', {x: 100, y: 78}, `${digits(first)} s`),
        svg('text', {x: width - 10, y: 78, 'text-anchor': 'end'}, `${digits(last)} s`));
}

function lifeOf(point, i, width) {
    const requests = requestsOf(point), status = statusOf(requests, i);
    const lines = [
        'arrival_s', 'queue_s', 'prefill_s', 'decode_s', 'stalled_s', 'ttft_s', 'tpot_s', 'e2e_s', 'max_itl_s',
        'prompt_tokens', 'output_tokens', 'cached_tokens', 'preemptions', 'replica'
    ].map((name) => [metricOf(name).label, shown(name, requests[name][i])]);
    return [
        el('h3', {}, `Request ${requests.request_id[i]}: ${status}`),
        requests.status[i] === FINISHED ? lifeBars(requests, i, width) : null,
        requests.status[i] === FINISHED ? el('ul', {class: 'legend'},
                                             PHASES.map(
                                                 ([, text, fillWith]) =>
                                                     el('li', {},
                                                        svg('svg', {viewBox: '0 0 34 12', 'aria-hidden': 'true'},
                                                            svg('rect', {width: 34, height: 12, fill: fillWith})),
                                                        text))) :
                                          null,
        el('dl', {class: 'facts'}, lines.map(([name, text]) => el('div', {}, el('dt', {}, name), el('dd', {}, text))))
    ];
}

/* ---- the section ---- */

function showRequests() {
    const {figure: holder, chart} = figure('A dot is a request, at its arrival. A click or Enter shows its life.');
    const note = el('p', {class: 'note', id: 'requests-note'}), life = el('div', {id: 'life', 'aria-live': 'polite'});
    const boxes = el('div', {});
    let metric = 'e2e_s', log = false;
    const draw = () => {
        const requests = requestsOf(here()), [from, to] = windowNow(), all = requestsIn(here(), from, to);
        holder.hidden = !requests;
        if (!requests) {
            note.textContent = `No requests.csv: ${NONE}.`;
            return;
        }
        const {chosen, note: thinning} = thinned(all, (i) => requests[metric][i]), of = metricOf(metric),
                             every = here().run.requests.every;
        note.textContent = `${all.length} requests in the window${
            every > 1 ? `, of one row in ${every} of requests.csv` : ''}${thinning}.`;
        const inStatus = (status) => chosen.filter((i) => requests.status[i] === status);
        const values =
            chosen.map((i) => requests[metric][i]).filter((value) => Number.isFinite(value) && (value > 0 || !log));
        const floor = log ? seenEnds(values)[0] * of.scale : 0,
              left = chosen.some((i) => !Number.isFinite(requests[metric][i]));
        if (left) note.textContent += ' Requests without that time stand at the foot of the chart.';
        chart.draw({
            title: `Requests: ${of.label}`,
            x: {label: 'arrival (s)'},
            y: {label: withUnit(metric), log},
            zero: true,
            height: 300,
            onPick: chooseRequest,
            series: STATUS_STYLES
                        .map((style, status) => ({
                                 name: statusNames(here().run)[status],
                                 style,
                                 hollow: status === HOLLOW_STATUS,
                                 dots: true,
                                 small: status === FINISHED,
                                 points: inStatus(status).map(
                                     (i) => ({
                                         x: requests.arrival_s[i],
                                         y: Number.isFinite(requests[metric][i]) ? requests[metric][i] * of.scale :
                                             Number.isFinite(floor)              ? floor :
                                                                                   0.1,
                                         hollow: status === HOLLOW_STATUS,
                                         pick: i,
                                         text: requestText(requests, i, metric)
                                     }))
                             }))
                        .filter((series) => series.points.length)
        });
    };
    const id = el('input', {
        type: 'text',
        id: 'request-id',
        inputmode: 'numeric',
        onchange: () => {
            const requests = requestsOf(here()), found = requests ? requests.request_id.indexOf(Number(id.value)) : -1;
            say(found < 0 ? `no request ${id.value} on this page` : `request ${id.value}`);
            id.setAttribute('aria-invalid', found < 0);
            if (found >= 0) chooseRequest(found);
        }
    });
    section(
        'requests', 'Requests', note,
        el('div', {class: 'controls'},
           choice(
               'request-metric', 'metric', REQUEST_METRICS.map((name) => [name, withUnit(name)]), metric,
               (name) => {
                   metric = name;
                   draw();
               }),
           tick(
               'request-log', 'logarithmic', false,
               (on) => {
                   log = on;
                   draw();
               }),
           el('label',
              {for: 'request-id'
              },
              'request', id)),
        boxes, holder, life);
    const showBoxes = () => boxes.replaceChildren(...statusBoxes(() => tell('window')));
    whenChanged('point', showBoxes);
    whenChanged('window', draw);
    whenChanged('request', () => {
        life.replaceChildren(
            ...(state.request === null ?
                    [] :
                    lifeOf(here(), state.request, Math.max(320, Math.min(900, life.clientWidth || 800)))
                        .filter((part) => part)));
    });
}
