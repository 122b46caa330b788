#include "import/start.h"

#include <string.h>

/* Parts of words that only one server's command has, and how many words it is long. */
static const struct program programs[] = {
    {"vllm", "serve", SERVER_VLLM, NULL},
    {"vllm.entrypoints.openai.api_server", NULL, SERVER_VLLM, NULL},
    {"vllm.entrypoints.api_server", NULL, SERVER_VLLM, NULL},
    {"vllm-openai", NULL, SERVER_VLLM, NULL},
    {"sglang", "serve", SERVER_SGLANG, NULL},
    {"sglang.launch_server", NULL, SERVER_SGLANG, NULL},
    {"trtllm-serve", NULL, SERVER_TRTLLM, NULL},
    {"trtllm-serve", "serve", SERVER_TRTLLM, NULL}, /* the later row of one word counts */
    {"trtllm-build", NULL, SERVER_TRTLLM, "tensorrt"},
};
enum { N_PROGRAMS = sizeof programs / sizeof *programs };

bool start_names(const char *word, const char *part)
{
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
    const size_t n_chars = strlen(part);
    return strncmp(name, part, n_chars) == 0 && (!name[n_chars] || strchr(":@", name[n_chars]));
}

static bool is_one_of(const char *word, const char *const *names)
{
    while (*names && !start_names(word, *names))
        names++;
    return *names;
}

/* Commands that name a program, an image or a container without starting it. */
static bool starts_nothing(const struct words *words, size_t begin, size_t end)
{
    static const char *const commands[] = {"echo",  "printf",  "pkill", "pgrep",
                                           "which", "killall", "grep",  NULL};
    static const char *const seconds[] = {"pull", "push", "rm",   "rmi", "stop",
                                          "kill", "logs", "wait", NULL};
    begin += begin < end && start_names(words->of[begin], "sudo");
    return (begin < end && is_one_of(words->of[begin], commands)) ||
           (begin + 1 < end && is_one_of(words->of[begin + 1], seconds));
}

/* The last program that a word of a command is: an image may hold a program of its own. */
static struct start find_program(const struct words *words, size_t begin, size_t end)
{
    struct start found = {NULL, begin, end};
    for (size_t i = starts_nothing(words, begin, end) ? end : begin; i < end; i++)
        for (size_t k = 0; k < N_PROGRAMS; k++) {
            const struct program *program = &programs[k];
            if (!start_names(words->of[i], program->part) ||
                (program->next && (i + 1 == end || strcmp(words->of[i + 1], program->next) != 0)))
                continue;
            found.program = program;
            found.at = i + (program->next != NULL);
        }
    return found;
}

/* A server on several nodes is started on each of them. The flags are those of a node behind the
 * first: vLLM's, and SGLang's number of the node. */
static bool is_further_node(const struct words *words, size_t begin, size_t end)
{
    static const char *const flags[] = {"--headless", "--node-rank", "--node_rank",
                                        "--node-rank=", "--node_rank="};
    for (size_t i = begin; i < end; i++) {
        const char *word = words->of[i], *next = i + 1 < end ? words->of[i + 1] : "";
        const char *sign = strchr(word, '=');
        const size_t n_chars = sign ? (size_t)(sign - word) + 1 : strlen(word);
        for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
            if (strlen(flags[k]) == n_chars && strncmp(word, flags[k], n_chars) == 0)
                return k == 0 || strcmp(sign ? sign + 1 : next, "0") != 0;
    }
    return false;
}

int start_find(const struct words *words, struct start *start, struct ifl_error *error)
{
    bool is_further = false;
    *start = (struct start){NULL, 0, words->n};
    for (size_t begin = 0, end; begin < words->n; begin = end + 1) {
        for (end = begin; end < words->n && !words->is_break[end];)
            end++;
        const struct start found = find_program(words, begin, end);
        const bool is_node = found.program && is_further_node(words, begin, end);
        if (is_node && start->program)
            continue;
        if (found.program && start->program && !is_further)
            return ifl_fail(error, IFL_E_INPUT,
                            "the command line starts a second server (%s), expected one",
                            found.program->part);
        if (found.program) {
            *start = found;
            is_further = is_node;
        }
    }
    return 0;
}

size_t start_inner(const struct words *words)
{
    for (size_t i = 1; i < words->n; i++) {
        const char *flag = words->of[i - 1];
        if (flag[0] == '-' && flag[1] != '-' && flag[strlen(flag) - 1] == 'c' &&
            strpbrk(words->of[i], " \t\n"))
            return i;
    }
    return 0;
}

bool start_is_in(const char *command)
{
    struct words words;
    struct start start = {NULL, 0, 0};
    struct ifl_error wrong;
    if (words_split(command, &words, &wrong) < 0)
        return false;
    const size_t inner = start_inner(&words);
    const bool is_in = (inner > 0 && start_is_in(words.of[inner])) ||
                       start_find(&words, &start, &wrong) < 0 || start.program;
    words_free(&words);
    return is_in;
}

size_t start_skip_node(const struct words *words, size_t begin, size_t limit)
{
    size_t end = begin;
    while (end < limit && !words->is_break[end])
        end++;
    const bool is_whole = end < limit || limit == words->n;
    const bool is_node =
        is_whole && find_program(words, begin, end).program && is_further_node(words, begin, end);
    return is_node ? end : begin;
}

bool start_is_further(const char *command)
{
    struct words words;
    struct ifl_error wrong;
    if (words_split(command, &words, &wrong) < 0)
        return false;
    const size_t inner = start_inner(&words);
    const bool is_further =
        inner > 0 ? start_is_further(words.of[inner]) : is_further_node(&words, 0, words.n);
    words_free(&words);
    return is_further;
}
