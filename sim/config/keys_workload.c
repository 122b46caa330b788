/* The keys of `workload`: which requests arrive, when, and what their clients do. */
#include "config/key_fields.h"

static const struct ifl_param workload_fields[] = {
    TEXT_REQUIRED("trace", workload.trace_name, "the trace file, plain or gzipped"),
    TEXT("format", workload.format, "auto", "format of the trace, see `inflight list traces`"),
    INT("max_record_mib", workload.max_record_mib, IFL_MAX_RECORD_MIB, 1, 1 << 20, "MiB",
        "a trace with a longer line or JSON object is refused, because it would fill the memory"),
    TEXT("tokenizer", workload.tokenizer_name, NULL,
         "counts the tokens of texts in sharegpt traces and in a server's requests: a model's "
         "tokenizer.json, tekken.json, tokenizer.model or .tiktoken file, or a folder with one; "
         "without it: 4 characters per token"),
    TEXT("prompt_template", workload.prompt_template, NULL,
         "with a tokenizer: text around a prompt, as the server's chat template adds it, with {} "
         "in place of the prompt"),
    COUNT("limit", workload.window.limit, 0, "requests", "number of requests kept; 0: all"),
    COUNT("skip", workload.window.skip, 0, "requests", "number of requests skipped at the start"),
    TIME("from_s", workload.window.from_ns, 0, 0, A_BILLION,
         "keep requests that arrive at this time or later"),
    TIME("to_s", workload.window.to_ns, 0, 0, A_BILLION,
         "keep requests that arrive before this time; 0: to the end"),
    BOOL("shuffle", workload.window.shuffle, false, "put the rows in a random order"),
    COUNT("shuffle_seed", workload.window.shuffle_seed, 0, "", "seed of that order"),
    INT("shared_prefix_tokens", workload.shared_prefix_tokens, 0, 0, ANY, "tokens",
        "common beginning of all prompts without a prefix group of their own, for the prefix "
        "cache"),
    REAL("deadline_s", workload.deadline_s, 0, 0, A_BILLION, "s",
         "time after arrival when the server gives up a request without a deadline of its own; 0: "
         "never"),
};

static const struct key_by_hand workload_by_hand[] = {
    {"filter", "none, sharegpt, or a map of the keys below", "none",
     "sharegpt: min_prompt 4, min_output 4, max_prompt 1024 and max_total 2048, as in vLLM's "
     "benchmark"},
};

const struct key_table workload_keys = {FIELDS(workload), BY_HAND(workload)};

static const struct ifl_param filter_fields[] = {
    INT("min_prompt", workload.window.min_prompt, 0, 0, ANY, "tokens", "shortest prompt kept"),
    INT("min_output", workload.window.min_output, 0, 0, ANY, "tokens", "shortest output kept"),
    INT("max_prompt", workload.window.max_prompt, 0, 0, ANY, "tokens",
        "longest prompt kept; 0: no limit"),
    INT("max_total", workload.window.max_total, 0, 0, ANY, "tokens",
        "longest prompt plus output kept; 0: no limit"),
};

const struct key_table filter_keys = {FIELDS(filter)};

static const struct ifl_param arrivals_fields[] = {
    CHOICE("process", workload.arrivals.process, "trace|poisson|gamma|constant|burst|closed",
           IFL_ARRIVE_TRACE, "trace: arrival times of the trace; others: generated arrival times"),
    REAL("rate_rps", workload.arrivals.rate_rps, 0, 0, 1e9, "requests/s",
         "mean rate of poisson, gamma, constant"),
    REAL("cv", workload.arrivals.cv, 1, 0.01, 50, "", "coefficient of variation of gamma's gaps"),
    REAL("speedup", workload.arrivals.speedup, 1, SMALL, 1e9, "",
         "process trace: arrival times are divided by this"),
    INT("concurrency", workload.arrivals.concurrency, 0, 0, ANY, "requests",
        "process closed: requests in progress at a time"),
    COUNT("seed", workload.arrivals.seed, 0, "", "seed of the arrivals"),
    REAL("sine_amplitude_frac", workload.arrivals.sine_amplitude_frac, 0, 0, 1, "of the rate",
         "the rate is multiplied by 1 + amplitude x sin(2 pi (t + phase) / period)"),
    REAL("sine_period_s", workload.arrivals.sine_period_s, 0, 0, A_BILLION, "s",
         "period; above 0 if the amplitude is above 0"),
    REAL("sine_phase_s", workload.arrivals.sine_phase_s, 0, -A_BILLION, A_BILLION, "s",
         "phase: its time at the start"),
};

static const struct key_by_hand arrivals_by_hand[] = {
    {"pieces", "a list of pairs [from_s, rate_rps], at most 64", "none",
     "the rate from from_s on, in place of rate_rps; the first from_s is 0"},
};

const struct key_table arrivals_keys = {FIELDS(arrivals), BY_HAND(arrivals)};

static const struct ifl_param predictor_fields[] = {
    CHOICE("model", workload.predictor.model, "none|oracle|lognormal|buckets", PREDICT_ORACLE,
           "output lengths that policies see: none; the true ones; the true ones times a lognormal "
           "error; the upper end of their bucket"),
    REAL("sigma", workload.predictor.sigma, 0.5, 0, 10, "",
         "lognormal: standard deviation of the error's logarithm; its median is 1"),
    INT("bucket_tokens", workload.predictor.bucket_tokens, 64, 1, 1 << 20, "tokens",
        "buckets: width of a bucket"),
    REAL("miss_frac", workload.predictor.miss_frac, 0, 0, 1, "of requests",
         "buckets: fraction in a wrong bucket, the next lower or higher"),
    COUNT("seed", workload.predictor.seed, 0, "", "seed of the errors"),
};

const struct key_table predictor_keys = {FIELDS(predictor)};

static const struct ifl_param patience_fields[] = {
    CHOICE("process", workload.patience.process, "none|constant|exponential|lognormal",
           PATIENCE_NONE,
           "distribution of the time that a client without an abort_s waits; it leaves then, "
           "answered or not"),
    REAL("mean_s", workload.patience.mean_s, 60, SMALL, A_BILLION, "s", "mean of that time"),
    REAL("cv", workload.patience.cv, 1, 0.01, 50, "", "lognormal: its coefficient of variation"),
    BOOL("until_first_token", workload.patience.until_first_token, false,
         "a client stays once it has its first token, even one with an abort_s"),
    COUNT("seed", workload.patience.seed, 0, "", "seed of the draws"),
};

const struct key_table patience_keys = {FIELDS(patience)};

static const struct ifl_param retry_fields[] = {
    INT("most", workload.retries.most, 0, 0, 100, "times",
        "how often a client repeats a request that was shed, timed out or aborted; OpenAI's "
        "client: 2"),
    REAL("backoff_s", workload.retries.backoff_s, 0.5, 0, A_BILLION, "s",
         "wait before the first repetition"),
    REAL("factor", workload.retries.factor, 2, 1, 1000, "",
         "factor by which that wait grows each time"),
    REAL("max_backoff_s", workload.retries.max_backoff_s, 8, 0, A_BILLION, "s",
         "limit of that wait"),
    REAL("jitter_frac", workload.retries.jitter_frac, 0.25, 0, 1, "",
         "largest share by which it is shortened, drawn uniformly"),
    COUNT("seed", workload.retries.seed, 0, "", "seed of the draws"),
};

const struct key_table retry_keys = {FIELDS(retry)};

static const struct ifl_param beams_fields[] = {
    BOOL(
        "search", workload.beams.search, false,
        "the samples of a request are beams of a beam search, which copy each other; executor sim"),
    REAL("fork_frac", workload.beams.fork_frac, 0.1, 0, 1, "of the beams",
         "fraction that continues, after each token, from a beam drawn at random; the others "
         "continue from themselves"),
    COUNT("seed", workload.beams.seed, 0, "", "seed of the draws"),
};

const struct key_table beams_keys = {FIELDS(beams)};
