/* Names, units and digits of metrics. */

const WORDS = {
    ttft: 'TTFT',
    tpot: 'TPOT',
    itl: 'ITL',
    e2e: 'end to end',
    normalized_latency: 'normalized latency',
    queue: 'in the queue',
    request_throughput: 'requests',
    output_throughput: 'output',
    total_throughput: 'prompt and output',
    goodput: 'goodput',
    attainment: 'SLO attainment',
    kv_token: 'K/V holds tokens',
    kv_reserved: 'K/V reserved',
    kv_internal: 'K/V internal waste',
    kv_external: 'K/V external',
    kv_shared: 'K/V saved by sharing',
    cached_prompt: 'prompts from cache',
    mean_batch: 'mean batch',
    max_itl: 'longest gap',
    prefill: 'prefill',
    decode: 'decode',
    stalled: 'stalled',
    arrival: 'arrival',
    duration: 'duration',
    warmup: 'warm-up',
    request_id: 'request',
    prompt: 'prompt',
    cached: 'cached',
    swap_outs: 'swap-outs',
    steps: 'steps',
    kv_used: 'K/V used',
};
/* Suffix of a column, what it is called, and by what its values are multiplied. */
const UNITS = [
    ['_tok_per_s', 'tok/s', 1], ['_rps', 'req/s', 1], ['_frac', '%', 100], ['_seqs', 'seqs', 1],
    ['_tokens', 'tokens', 1], ['_s', 's', 1]
];
const IN_MS = /(^|_)(tpot|itl|normalized_latency)_s$/;

/* {label, unit, scale} of a column. */
function metricOf(column) {
    const unit = UNITS.find(([suffix]) => column.endsWith(suffix)) || ['', '', 1];
    let stem = column.slice(0, column.length - unit[0].length);
    const statistic = /^(mean|p\d+)_(?!batch)/.exec(stem);
    if (statistic) stem = stem.slice(statistic[0].length);
    const word = WORDS[stem] || stem.replace(/_/g, ' ');
    const label = statistic ? `${word}, ${statistic[1]}` : word;
    return IN_MS.test(column) ? {label, unit: column.includes('normalized') ? 'ms/tok' : 'ms', scale: 1000} :
                                {label, unit: unit[1], scale: unit[2]};
}

const withUnit = (column) => {
    const of = metricOf(column);
    return of.unit ? `${of.label} (${of.unit})` : of.label;
};

/* Four significant digits, whole numbers with all of theirs. */
function digits(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return '-';
    const size = Math.abs(value);
    if (Number.isInteger(value) && size < 1e15) return String(value);
    if (size >= 1e6 || size < 1e-4) return value.toExponential(2);
    return value.toFixed(Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(size)))));
}

/* A value of a column with its unit. */
function shown(column, value) {
    const of = metricOf(column);
    if (value === null || value === undefined || Number.isNaN(value)) return '-';
    return `${digits(value * of.scale)}${of.unit ? ` ${of.unit}` : ''}`;
}

const seconds = (value) => Number.isNaN(value) ? '-' :
    Math.abs(value) < 1 && value !== 0         ? `${digits(value * 1000)} ms` :
                                                 `${digits(value)} s`;
