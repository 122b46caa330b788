/* What the reader has chosen: a point, a window of its time, a request. A view that shows one of them is told when it
 * changes. */

const state = {
    point: 0,          /* of `points` */
    window: null,      /* [from, to] in seconds; null: all of the run */
    request: null,     /* row of the point's requests */
    hidden: new Set(), /* statuses of requests that are not shown */
    listeners: {point: [], window: [], request: []},
};

const whenChanged = (what, listener) => state.listeners[what].push(listener);

const tell = (what) => state.listeners[what].forEach((listener) => listener());

function choosePoint(index) {
    if (index < 0) return;
    state.point = index;
    state.window = null;
    state.request = null;
    tell('point');
    tell('window');
    tell('request');
    say(`shown in detail: ${points[index].label}`);
}

function chooseWindow(from, to) {
    const [first, last] = spanOf(points[state.point]);
    const low = Math.max(first, Math.min(from, to)), high = Math.min(last, Math.max(from, to));
    state.window = high > low && (low > first || high < last) ? [low, high] : null;
    tell('window');
}

function chooseRequest(row) {
    state.request = row;
    tell('request');
}

const here = () => points[state.point];

/* From the first arrival or step to the last end of a point, in seconds. */
function spanOf(point) {
    if (point.span) return point.span;
    let first = Infinity, last = -Infinity;
    const requests = requestsOf(point), bins = columnsOf(point.run.over_time, point.number);
    for (let i = 0; requests && i < requests.n; i++) {
        first = Math.min(first, requests.arrival_s[i]);
        last = Math.max(last, requests.arrival_s[i] + (requests.e2e_s[i] || 0));
    }
    if (bins && bins.n) {
        first = Math.min(first, bins.of.origin_s);
        last = Math.max(last, bins.of.origin_s + bins.n * bins.of.width_s);
    }
    point.span = last > first ? [first, last] : [0, 1];
    return point.span;
}

const windowNow = () => state.window || spanOf(here());
