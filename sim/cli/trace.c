/* inflight trace: look at, convert and synthesise traces. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"
#include "inflight/trace.h"

#include "base/data.h"
#include "base/new_file.h"
#include "cli/commands.h"
#include "cli/usage.h"

static const struct ifl_notes notes = {cli_note, NULL};

/* ---- stats ---- */

static void print_real(const char *name, double value, const char *unit)
{
    if (isnan(value))
        printf("  %-18s -\n", name);
    else
        printf("  %-18s %.6g%s%s\n", name, value, *unit ? " " : "", unit);
}

static void print_lengths(const char *name, const struct ifl_length_stats *s)
{
    printf("  %-18s mean %.1f  p50 %.0f  p90 %.0f  p99 %.0f  max %.0f tokens\n", name, s->mean,
           s->p50, s->p90, s->p99, s->max);
}

/* What was read from the columns beside stamps and lengths. */
static void print_columns(const struct ifl_trace_stats *s)
{
    if (s->n_turns)
        printf("  %-18s %zu, with %zu turns, %zu of them after a think time\n", "sessions",
               s->n_sessions, s->n_turns, s->n_waiting_turns);
    if (s->n_prefix_groups)
        printf("  %-18s %zu, with %zu requests\n", "prefix groups", s->n_prefix_groups,
               s->n_in_groups);
    if (s->n_hash_ids)
        printf("  %-18s %zu of %zu seen before (%.1f%%)\n", "prefix blocks", s->n_hash_hits,
               s->n_hash_ids, 100.0 * (double)s->n_hash_hits / (double)s->n_hash_ids);
    if (s->n_clients)
        printf("  %-18s %zu\n", "clients", s->n_clients);
    if (s->least_priority != s->most_priority)
        printf("  %-18s %d to %d\n", "priority", s->least_priority, s->most_priority);
    if (s->n_ttft_slos + s->n_tpot_slos)
        printf("  %-18s ttft_slo_s of %zu requests, tpot_slo_s of %zu\n", "deadlines",
               s->n_ttft_slos, s->n_tpot_slos);
    if (s->n_limits)
        printf("  %-18s of %zu requests\n", "max_tokens", s->n_limits);
    if (s->most_samples > 1)
        printf("  %-18s up to %d\n", "samples", s->most_samples);
}

static int print_stats(const struct ifl_trace_file *file)
{
    struct ifl_trace trace = {0};
    struct ifl_trace_stats stats = {0};
    struct ifl_error error;
    int rc = ifl_trace_read(file, &notes, &trace, &error);
    if (rc == 0)
        rc = ifl_trace_measure(&trace, &stats, &error);
    ifl_trace_free(&trace);
    if (rc < 0)
        return cli_fail(&error);
    printf("%s\n  %-18s %zu\n", file->path, "requests", stats.n);
    print_real("span", stats.span_s, "s");
    print_real("rate", stats.rate_rps, "requests/s");
    print_real("gap cv", stats.gap_cv, "");
    print_lengths("prompt", &stats.prompt);
    print_lengths("output", &stats.output);
    print_columns(&stats);
    return 0;
}

struct reading {
    struct text_list files;
    const char *format, *path;
    long long max_record_mib;
};

/* 0, or 2 after a line on stderr. */
static int read_files(struct reading *reading, const struct command *command, int argc, char **argv)
{
    *reading = (struct reading){.format = "auto", .max_record_mib = IFL_MAX_RECORD_MIB};
    if (options_read(command, reading, argc, argv, &reading->files) < 0 ||
        cli_check_max_record(command->name, reading->max_record_mib) < 0)
        return 2;
    return 0;
}

/* A trace that comes with inflight is found from any folder. */
static struct ifl_trace_file file_at(const struct reading *reading, size_t i, char found[512])
{
    const char *path = data_path(reading->files.of[i], found) == 0 ? found : reading->files.of[i];
    return (struct ifl_trace_file){path, reading->format, (int32_t)reading->max_record_mib};
}

static int trace_stats(int argc, char **argv)
{
    struct reading reading;
    char found[512];
    if (read_files(&reading, &command_trace_stats, argc, argv) != 0)
        return 2;
    if (reading.files.n == 0)
        return usage_fail(&command_trace_stats);
    int worst = 0;
    for (size_t i = 0; i < reading.files.n; i++) {
        const struct ifl_trace_file file = file_at(&reading, i, found);
        const int rc = print_stats(&file);
        worst = rc > worst ? rc : worst;
    }
    return worst;
}

static const struct option_spec stats_options[] = {
    {"--format", "-f", OPTION_TEXT, offsetof(struct reading, format), "NAME",
     "format of the files, see `inflight list traces` (auto)", COMPLETE_FORMAT},
    {"--max-record", NULL, OPTION_COUNT, offsetof(struct reading, max_record_mib), "MIB",
     "longest line or JSON object that is accepted (256)", COMPLETE_NOTHING},
};

const struct command command_trace_stats = {
    .name = "trace stats",
    .doc = "print rate, burstiness and lengths of traces",
    .arguments = "FILE...",
    .example = "inflight trace stats traces/data/azure-conv-2023.csv.gz",
    .completion = COMPLETE_FILE,
    .options = stats_options,
    .n_options = sizeof stats_options / sizeof *stats_options,
    .run = trace_stats,
};

/* ---- writing ---- */

static int write_to(FILE *out, const struct ifl_trace *trace, const char *name,
                    struct ifl_error *error)
{
    const int rc = ifl_trace_write(trace, out, error);
    if (rc < 0 && !error->file[0])
        snprintf(error->file, sizeof error->file, "%s", name);
    return rc;
}

static int write_trace(const struct ifl_trace *trace, const char *path, struct ifl_error *error)
{
    struct new_file file;
    if (!path)
        return write_to(stdout, trace, "standard output", error);
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    return new_file_close(&file, write_to(file.out, trace, path, error), error);
}

static int trace_convert(int argc, char **argv)
{
    struct reading reading;
    char found[512];
    struct ifl_trace trace = {0};
    struct ifl_error error;
    if (read_files(&reading, &command_trace_convert, argc, argv) != 0)
        return 2;
    if (reading.files.n != 1)
        return usage_fail(&command_trace_convert);
    const struct ifl_trace_file file = file_at(&reading, 0, found);
    int rc = ifl_trace_read(&file, &notes, &trace, &error);
    if (rc == 0 && trace.hash_at)
        cli_note(NULL, "hash ids and token ids of prompts are not written to inflight's CSV: what "
                       "prompts share is left out");
    if (rc == 0)
        rc = write_trace(&trace, reading.path, &error);
    ifl_trace_free(&trace);
    return rc < 0 ? cli_fail(&error) : 0;
}

static const struct option_spec convert_options[] = {
    {"--format", "-f", OPTION_TEXT, offsetof(struct reading, format), "NAME",
     "format of the files, see `inflight list traces` (auto)", COMPLETE_FORMAT},
    {"--max-record", NULL, OPTION_COUNT, offsetof(struct reading, max_record_mib), "MIB",
     "longest line or JSON object that is accepted (256)", COMPLETE_NOTHING},
    {"--output", "-o", OPTION_TEXT, offsetof(struct reading, path), "OUT.csv",
     "file for the trace (standard output)", COMPLETE_FILE},
};

const struct command command_trace_convert = {
    .name = "trace convert",
    .doc = "convert a trace of any format to inflight's own CSV",
    .arguments = "FILE",
    .example = "inflight trace convert traces/data/azure-conv-2023.csv.gz -o trace.csv",
    .completion = COMPLETE_FILE,
    .options = convert_options,
    .n_options = sizeof convert_options / sizeof *convert_options,
    .run = trace_convert,
};

/* ---- generating ---- */

/* Reads the numbers of "law:a,b,c" into x. Returns how many, or -1 if the text has another form. */
static int law_numbers(const char *text, const char *law, double x[4])
{
    const size_t n_law = strlen(law);
    if (strncmp(text, law, n_law) != 0 || text[n_law] != ':')
        return -1;
    const char *at = text + n_law + 1;
    for (int n = 0; n < 4; n++) {
        char *end;
        x[n] = strtod(at, &end);
        if (end == at || !isfinite(x[n]))
            return -1;
        if (*end == '\0')
            return n + 1;
        if (*end != ',')
            return -1;
        at = end + 1;
    }
    return -1;
}

static bool bounds(double min, double max, struct ifl_length_spec *spec)
{
    if (min < 1 || max < min || max > INT32_MAX)
        return false;
    spec->min = (int32_t)min;
    spec->max = (int32_t)max;
    return true;
}

static bool read_law(const char *text, struct ifl_length_spec *spec)
{
    double x[4];
    int n;
    *spec = (struct ifl_length_spec){.min = 1, .max = 1 << 20};
    if (law_numbers(text, "fixed", x) == 1) {
        spec->law = IFL_LENGTH_FIXED;
        spec->mean = x[0];
        return bounds(x[0], x[0], spec);
    }
    if (law_numbers(text, "uniform", x) == 2) {
        spec->law = IFL_LENGTH_UNIFORM;
        return bounds(x[0], x[1], spec);
    }
    if ((n = law_numbers(text, "lognormal", x)) == 2 || n == 4) {
        spec->law = IFL_LENGTH_LOGNORMAL;
        spec->mean = x[0];
        spec->cv = x[1];
        return x[0] >= 1 && x[1] >= 0 && (n == 2 || bounds(x[2], x[3], spec));
    }
    if (law_numbers(text, "zipf", x) == 3) {
        spec->law = IFL_LENGTH_ZIPF;
        spec->exponent = x[0];
        return bounds(x[1], x[2], spec);
    }
    return false;
}

static int parse_law(const char *option, const char *text, struct ifl_length_spec *spec)
{
    if (read_law(text, spec))
        return 0;
    fprintf(stderr,
            "inflight trace generate: %s %s: expected fixed:TOKENS, uniform:MIN,MAX, "
            "lognormal:MEAN,CV[,MIN,MAX] or zipf:EXPONENT,MIN,MAX, lengths from 1 on\n",
            option, text);
    return -1;
}

static int parse_process(const char *name, enum ifl_process *process)
{
    static const char *const names[] = {"poisson", "gamma", "constant", "burst"};
    static const enum ifl_process kinds[] = {IFL_ARRIVE_POISSON, IFL_ARRIVE_GAMMA,
                                             IFL_ARRIVE_CONSTANT, IFL_ARRIVE_BURST};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *process = kinds[i];
            return 0;
        }
    fprintf(stderr,
            "inflight trace generate: --process %s: expected poisson, gamma, constant or burst\n",
            name);
    return -1;
}

struct generation {
    struct text_list words;
    const char *prompt_law, *output_law, *process, *path;
    long long n, seed;
    struct ifl_arrivals arrivals;
    long long n_adapters;
    double adapter_alpha;
};

static int generate(struct generation *of)
{
    struct ifl_length_spec prompt, output;
    struct ifl_trace trace = {0};
    struct ifl_error error;
    if (parse_law("--prompt", of->prompt_law, &prompt) < 0 ||
        parse_law("--output-tokens", of->output_law, &output) < 0 ||
        (of->process && parse_process(of->process, &of->arrivals.process) < 0))
        return 2;
    if (!of->process && of->arrivals.rate_rps != 0) {
        fprintf(stderr, "inflight trace generate: --rate without --process, expected one of "
                        "poisson, gamma and constant\n");
        return 2;
    }
    of->arrivals.seed = (uint64_t)of->seed;
    int rc =
        ifl_trace_generate((size_t)of->n, (uint64_t)of->seed, &prompt, &output, &trace, &error);
    const uint32_t n_adapters = (uint32_t)ifl_min(of->n_adapters, (long long)UINT32_MAX);
    const struct ifl_adapter_spec adapters = {n_adapters, of->adapter_alpha};
    if (rc == 0 && of->n_adapters > 0)
        rc = ifl_trace_adapt(&trace, (uint64_t)of->seed, &adapters, &error);
    if (rc == 0 && of->process)
        rc = ifl_trace_arrive(&trace, &of->arrivals, "generated trace", &notes, &error);
    if (rc == 0)
        rc = write_trace(&trace, of->path, &error);
    ifl_trace_free(&trace);
    return rc < 0 ? cli_fail(&error) : 0;
}

static int trace_generate(int argc, char **argv)
{
    struct generation of = {.prompt_law = "lognormal:200,1.2,4,1024",
                            .output_law = "lognormal:220,1.0,4,1024",
                            .seed = 1,
                            .adapter_alpha = 1,
                            .arrivals = {.speedup = 1, .cv = 1}};
    if (options_read(&command_trace_generate, &of, argc, argv, &of.words) < 0)
        return 2;
    if (of.n == 0 || of.words.n > 0)
        return usage_fail(&command_trace_generate);
    return generate(&of);
}

static const struct option_spec generate_options[] = {
    {"--count", "-n", OPTION_COUNT, offsetof(struct generation, n), "N", "number of requests",
     COMPLETE_NOTHING},
    {"--seed", NULL, OPTION_COUNT, offsetof(struct generation, seed), "N",
     "seed of the random draws (1)", COMPLETE_NOTHING},
    {"--prompt", NULL, OPTION_TEXT, offsetof(struct generation, prompt_law), "LAW",
     "distribution of prompt lengths (lognormal:200,1.2,4,1024)", COMPLETE_NOTHING},
    {"--output-tokens", NULL, OPTION_TEXT, offsetof(struct generation, output_law), "LAW",
     "distribution of output lengths (lognormal:220,1.0,4,1024)", COMPLETE_NOTHING},
    {"--process", NULL, OPTION_TEXT, offsetof(struct generation, process),
     "poisson|gamma|constant|burst", "arrival process; without it the trace has no times",
     COMPLETE_NOTHING},
    {"--rate", NULL, OPTION_REAL, offsetof(struct generation, arrivals.rate_rps), "RPS",
     "requests per second", COMPLETE_NOTHING},
    {"--cv", NULL, OPTION_REAL, offsetof(struct generation, arrivals.cv), "X",
     "coefficient of variation of the gaps, with gamma (1)", COMPLETE_NOTHING},
    {"--adapters", NULL, OPTION_COUNT, offsetof(struct generation, n_adapters), "N",
     "low-rank adapters over which the requests are distributed (0: no column)", COMPLETE_NOTHING},
    {"--adapter-alpha", NULL, OPTION_REAL, offsetof(struct generation, adapter_alpha), "X",
     "adapter floor(N u^(1/X)), u uniform: 1: all alike, below 1: first ones more often (1)",
     COMPLETE_NOTHING},
    {"--output", "-o", OPTION_TEXT, offsetof(struct generation, path), "OUT.csv",
     "file for the trace (standard output)", COMPLETE_FILE},
};

const struct command command_trace_generate = {
    .name = "trace generate",
    .doc = "generate a synthetic trace",
    .arguments = "-n N",
    .example = "inflight trace generate -n 1000 --process poisson --rate 4 -o synthetic.csv",
    .notes = "LAW is fixed:TOKENS, uniform:MIN,MAX, lognormal:MEAN,CV[,MIN,MAX] or "
             "zipf:EXPONENT,MIN,MAX.",
    .completion = COMPLETE_NOTHING,
    .options = generate_options,
    .n_options = sizeof generate_options / sizeof *generate_options,
    .run = trace_generate,
};
