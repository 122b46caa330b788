/* The data of the page: what pack.h packs, and the points, rows and series of all runs. */
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);

const DIGIT = new Int8Array(128).fill(-1);
'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'.split('').forEach((letter, i) => {
    DIGIT[letter.charCodeAt(0)] = i;
});

/* The numbers of a packed column; NaN where one is not defined. The last one stands for all that are missing. */
function unpack(text, n, scale, asDifferences) {
    const values = new Float64Array(n);
    let value = 0, shift = 1, last = 0, count = 0;
    for (let i = 0; i < text.length; i++) {
        const digit = DIGIT[text.charCodeAt(i)];
        if (digit < 0) {
            values[count++] = NaN;
            continue;
        }
        value += (digit & 31) * shift;
        shift *= 32;
        if (digit & 32) continue;
        const half = Math.floor(value / 2);
        const number = value % 2 ? -half : half;
        last = asDifferences ? last + number : number;
        values[count++] = last / scale;
        value = 0;
        shift = 1;
    }
    return values.fill(values[count - 1], count);
}

/* The columns of a point in a packed table of a run, by name; null where it has none. */
function columnsOf(table, number) {
    const rows = table && table.points.find((of) => of.point === number);
    if (!rows) return null;
    if (!rows.columns) {
        rows.columns = {n: rows.n};
        table.columns.forEach((name, i) => {
            let values = null;
            Object.defineProperty(rows.columns, name, {
                get: () => values || (values = unpack(rows.packed[i], rows.n, table.scales[i], table.differences[i])),
            });
        });
        rows.columns.of = rows;
    }
    return rows.columns;
}

/* ---- names ---- */

const shortKey = (key) => key.slice(key.lastIndexOf('.') + 1);

/* The name of a preset, a model, a GPU or a variant needs no key beside it. */
const speaksForItself = (key) =>
    shortKey(key) === 'preset' || key === 'model' || key === 'hardware' || key === 'variant';

const isRate = (key) => shortKey(key) === 'rate_rps';

function labelOf(keys, values, leftOut) {
    return keys
        .map(
            (key, i) => leftOut(key) ? null :
                speaksForItself(key) ? values[i] :
                                       `${shortKey(key)} ${values[i]}`)
        .filter((part) => part !== null)
        .join(' / ');
}

const severalRuns = data.runs.length > 1;

data.runs.forEach((run) => {
    const same = data.runs.filter((other) => other.name === run.name).length > 1;
    run.title = same ? run.dir : run.name;
});

/* ---- points, and rows of the summary ---- */

/* A row is a point, or the mean of its replications; `point` is the first of them. */
const rows = [];
const points = []; /* those shown in detail */
const seriesNames = [];

function seriesNumber(name) {
    if (!seriesNames.includes(name)) seriesNames.push(name);
    return seriesNames.indexOf(name);
}

function cellsByName(table, row) {
    const cells = {};
    table.columns.forEach((name, i) => {
        cells[name] = row[i];
    });
    return cells;
}

function prefixed(run, label) {
    if (!severalRuns) return label || run.title;
    return label ? `${run.title}: ${label}` : run.title;
}

function addRun(run) {
    const keys = run.summary.columns.slice(0, run.keys);
    const swept = keys.filter((key) => key !== 'replication');
    const means = run.replications;
    const nReplications = means ? Math.round(run.summary.rows.length / means.rows.length) : 1;
    run.sweptKeys = swept;
    run.summary.rows.slice(0, run.detailed).forEach((row, number) => {
        points.push(
            {run, number, label: prefixed(run, labelOf(keys, row, () => false)), replication: number % nReplications});
    });
    (means || run.summary).rows.forEach((row, i) => {
        const table = means || run.summary;
        const rate = swept.findIndex(isRate);
        const first = run.summary.rows[i * nReplications];
        const name = prefixed(run, labelOf(swept, row, isRate));
        rows.push({
            run,
            number: i * nReplications,
            values: swept.map((key, k) => row[k]),
            cells: Object.assign(cellsByName(run.summary, first), cellsByName(table, row)),
            saturated: means ? cellsByName(table, row).saturated_runs > 0 : cellsByName(table, row).saturated === true,
            rate: rate < 0 ? null : Number(row[rate]),
            series: seriesNumber(name),
            label: prefixed(run, labelOf(swept, row, () => false)),
        });
    });
}
data.runs.forEach(addRun);

const hasRate = rows.length > 0 && rows.every((row) => row.rate !== null);

const pointOf = (row) => points.findIndex((point) => point.run === row.run && point.number === row.number);

const rowOf = (point) => rows.find((row) => row.run === point.run && row.number === point.number - point.replication);

/* The requests of a point as columns, with what follows from them. */
function requestsOf(point) {
    const of = columnsOf(point.run.requests, point.number);
    if (!of || of.tpot_s) return of;
    /* prefill_more_us: by how many microseconds prefill_s is more than what follows from the two others (requests.c) */
    const micro = (time) => Math.round(time * 1e6);
    const prefill = of.prefill_more_us.map((more, i) => (micro(of.ttft_s[i]) - micro(of.queue_s[i]) + more) / 1e6);
    const tpot = new Float64Array(of.n), decode = new Float64Array(of.n), normalized = new Float64Array(of.n);
    for (let i = 0; i < of.n; i++) {
        const more = of.output_tokens[i] - 1;
        tpot[i] = more > 0 ? (of.e2e_s[i] - of.ttft_s[i]) / more : NaN;
        decode[i] = of.e2e_s[i] - of.queue_s[i] - prefill[i] - of.stalled_s[i];
        normalized[i] = of.e2e_s[i] / of.output_tokens[i];
    }
    return Object.assign(of, {prefill_s: prefill, tpot_s: tpot, decode_s: decode, normalized_latency_s: normalized});
}
