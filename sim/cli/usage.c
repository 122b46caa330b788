#include "cli/usage.h"

#include <string.h>

static const struct usage {
    const char *command, *doc;
    const char *arguments; /* in lines */
    const char *notes;     /* or NULL */
} usages[] = {
    {"run", "fly a configuration: every point of its sweep",
     "CONFIG.yaml [--set path.to.key=value]... [--plugin FILE.so]... [-o DIR] [-j N] [--resume] "
     "[--quiet] [--timing] [--plot]",
     "-j N flies points on N threads, mpirun on many machines; the reports have the same bytes.\n"
     "--resume does what a killed run has not finished. `inflight list keys` names every key.\n"
     "--plot draws the latency against the rate, for a terminal of 80 columns."},
    {"capacity", "the highest rate that meets the objectives, and what it costs",
     "CONFIG.yaml [--set path.to.key=value]... [--plugin FILE.so]... [-o DIR] [-j N] [--resume] "
     "[--quiet] [--timing]",
     "The objectives are the keys under `capacity` and `slo`."},
    {"trace stats", "rate, burstiness and lengths of traces",
     "FILE... [--format NAME] [--max-record MIB]",
     "A line or JSON object of more than --max-record MiB (256) is refused."},
    {"trace convert", "a trace of any format as inflight's own CSV",
     "FILE [--format NAME] [--max-record MIB] [-o OUT.csv]",
     "`inflight list traces` names the formats. A line or JSON object of more than --max-record "
     "MiB\n"
     "(256) is refused."},
    {"trace generate", "a synthetic trace",
     "-n N [--seed N] [--prompt LAW] [--output-tokens LAW]\n"
     "[--process poisson|gamma|constant|burst --rate RPS [--cv X]] [-o OUT.csv]",
     "LAW is fixed:TOKENS, uniform:MIN,MAX, lognormal:MEAN,CV[,MIN,MAX] or zipf:EXPONENT,MIN,MAX."},
    {"model", "a model on a GPU: sizes, FLOPs, roofline, memory",
     "NAME|config.json [--hardware NAME] [--tensor N] [--batch N] [--length TOKENS]\n"
     "[--block TOKENS] [--utilization FRAC] [--price USD] [--compute FLOPS] [-o DIR]",
     "--price is of a GPU hour; --compute FLOPS, with a name or alone, finds the model size and "
     "data\n"
     "that a budget is best spent on."},
    {"calibrate", "what this machine takes for an engine's operations",
     "--engine cpu|cuda -o FILE.csv [--model MODEL] [--dtype DTYPE]\n"
     "[--threads N] [--runs N] [--blocks N]",
     "--model is llama-160m unless given, of random weights; --runs is the most of a shape (15);\n"
     "--dtype is auto, fp32 (cpu), bf16 or fp16 (cuda)."},
    {"fit", "a hardware profile from measurements",
     "FILE... [--like PROFILE] [-o OUT.yaml] [--train GROUP]... [--where CONDITION]...\n"
     "[--about TEXT] [--source TEXT] [--assumed TEXT] [--hold SECTION.FIELD=NUMBER]...\n"
     "[--plots DIR] [--even-octaves] [--corrections OUT.csv]",
     "`inflight fit --evaluate PROFILE FILE...` judges a profile on a table, `inflight fit "
     "--tables`\n"
     "lists the columns of those that are known. --like gives the peaks and what the tables do "
     "not\n"
     "cover: all but a sheet of inflight calibrate needs it. A condition is like m>=16.\n"
     "--even-octaves lets products of 1, 2 to 3, 4 to 7 rows and so on count the same, however "
     "many\n"
     "sizes a table has."},
    {"identify", "what no document says of a deployment, from its recorded runs",
     "CONFIG.yaml RECORDED... [--set path.to.key=value]... [--plugin FILE.so]... [-o OUT.yaml]\n"
     "[--share FRAC] [--hold PARAMETER]... [--free PARAMETER]... [--requests TRACE]...\n"
     "[--predict RECORDED]... [--format NAME]",
     "The first half of each run (--share 0.5) is fitted, the rest judges the fit. -o writes the "
     "deployment\n"
     "that other configurations name; --predict judges it on further runs. --requests names "
     "traces that\n"
     "know more of the recorded requests, such as shared prefixes."},
    {"validate", "a simulated run against a recorded one",
     "SIM_DIR REAL [-o DIR] [--format NAME] [--part K/N] [--no-plots] [--max-record MIB]",
     "A line or JSON object of more than --max-record MiB (256) is refused."},
    {"import", "a server's start-up log and command line as a configuration",
     "[LOG...] [--command \"vllm serve ...\"] [-o CONFIG.yaml]\n"
     "[--engine-version VERSION] [--model NAME] [--hardware NAME]",
     "Logs and command lines of vLLM 0.6 to 0.33, SGLang and TensorRT-LLM. Every flag and every "
     "line "
     "is\n"
     "listed: what it maps to, or that it is harmless, not modelled or unknown. Several logs are "
     "parts of\n"
     "the log of one server. The last three options say what the log does not."},
    {"export",
     "a run in the JSON of vllm bench serve, or a configuration as a server's command line",
     "DIR [-o FILE.json], or --server vllm|sglang CONFIG.yaml [-o FILE]", NULL},
    {"compare", "paired differences of two runs, with intervals",
     "DIR DIR [-o DIR] [--plot], or one DIR with --between KEY=VALUE,VALUE",
     "--plot draws the latency of both against the rate, for a terminal of 80 columns."},
    {"plot", "figures of runs",
     "DIR... [-o DIR] [--figure NAME]... [--columns 1|2] [--rate REQUESTS_PER_S]",
     "`inflight list figures` names what can be drawn."},
    {"report", "runs as one HTML page, to open in a browser without a network",
     "DIR... [-o FILE.html] [--from SECONDS]",
     "Without -o the page is report.html in the first folder. Single steps are shown from --from "
     "on."},
    {"table", "summaries of runs as a table in LaTeX, Markdown or CSV",
     "DIR... [--rows KEY,...] [--columns METRIC|KEY,...] [--where KEY=VALUE]...\n"
     "[--format markdown|latex|csv] [--digits N] [-o FILE]",
     "A key is one that was swept, or run; a metric is a column of summary.csv. A key among the "
     "columns\n"
     "gives each of its values columns of its own. With replications a cell is a mean and half the "
     "width\n"
     "of its 95% interval. The best of a column is bold."},
    {"list", "what there is to choose from",
     "policies|presets|models|hardware|deployments|traces|keys|figures [NAME] [--plugin "
     "FILE.so]...",
     "With --plugin, policies and keys tell of its modules, too. With the NAME of a preset, a "
     "model, "
     "a hardware profile or a deployment, that file is printed."},
};
enum { N_USAGES = sizeof usages / sizeof *usages };

void usage_list(FILE *out)
{
    fprintf(out, "usage: inflight COMMAND ...\n");
    for (size_t i = 0; i < N_USAGES; i++)
        fprintf(out, "    %-16s %s\n", usages[i].command, usages[i].doc);
    fprintf(out, "`inflight COMMAND --help` says how to call it, `inflight --version` which one "
                 "this is.\n");
}

/* Further lines are indented to stand below the arguments of the first. */
static void print_call(FILE *out, const char *before, const struct usage *usage)
{
    const char *line = usage->arguments;
    int n_chars = (int)strcspn(line, "\n");
    fprintf(out, "%s inflight %s %.*s\n", before, usage->command, n_chars, line);
    while (line[n_chars]) {
        line += n_chars + 1;
        n_chars = (int)strcspn(line, "\n");
        fprintf(out, "           %.*s\n", n_chars, line);
    }
}

/* The usage of "trace stats" is meant by "trace" and by "trace stats". */
static bool is_called(const struct usage *usage, const char *command)
{
    const size_t n_chars = strlen(command);
    return strncmp(usage->command, command, n_chars) == 0 &&
           (usage->command[n_chars] == '\0' || usage->command[n_chars] == ' ');
}

static size_t print_calls(FILE *out, const char *command)
{
    size_t n = 0;
    for (size_t i = 0; i < N_USAGES; i++)
        if (is_called(&usages[i], command))
            print_call(out, n++ ? "      " : "usage:", &usages[i]);
    return n;
}

int usage_fail(const char *command)
{
    print_calls(stderr, command);
    return 2;
}

/* ---- help ---- */

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static void explain(const char *command)
{
    if (print_calls(stdout, command) == 0)
        usage_list(stdout);
    for (size_t i = 0; i < N_USAGES; i++)
        if (strcmp(usages[i].command, command) == 0 && usages[i].notes)
            printf("%s\n", usages[i].notes);
}

/* True for the name of a command, of one word or of two as in "trace stats". */
static bool is_command(const char *words)
{
    size_t i = 0;
    while (i < N_USAGES && strcmp(usages[i].command, words) != 0)
        i++;
    return i < N_USAGES;
}

bool usage_helped(int argc, char **argv)
{
    char two_words[32];
    int i = 0;
    while (i < argc && !is_help(argv[i]))
        i++;
    if (i == argc)
        return false;
    snprintf(two_words, sizeof two_words, "%s %s", argv[0], argc > 1 ? argv[1] : "");
    explain(is_command(two_words) ? two_words : argv[0]);
    return true;
}
