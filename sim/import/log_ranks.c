#include "import/log_ranks.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"

void log_ranks_init(struct log_ranks *ranks)
{
    *ranks = (struct log_ranks){.group_least = 1, .group_most = LONG_MAX};
}

/* Returns the rank of that name in front of `end`; -1: there is none. MOE_DP is no DP. */
static long rank_of(const char *line, const char *end, const char *name, bool underscores)
{
    const char *before = underscores ? " _(" : " ", *behind = underscores ? " _])" : " ]";
    for (const char *at = line; (at = strstr(at, name)) && at < end; at++) {
        const size_t n = strspn(at + 2, "0123456789");
        if (n > 0 && n <= 5 && at > line && strchr(before, at[-1]) && strchr(behind, at[2 + n]))
            return strtol(at + 2, NULL, 10);
    }
    return -1;
}

void log_ranks_note(struct log_ranks *ranks, const char *line, struct place at)
{
    static const char *const names[N_RANK_KINDS] = {"TP", "DP", "EP", "PP"};
    const char close = *line == '(' ? ')' : *line == '[' ? ']' : '\0';
    const char *end = close ? strchr(line, close) : NULL;
    const size_t n_kinds = *line == '[' ? N_RANK_KINDS : 1; /* of vLLM's lines TP alone */
    long of[N_RANK_KINDS] = {-1, -1, -1, -1};
    for (size_t i = 0; end && i < n_kinds; i++) {
        of[i] = rank_of(line, end, names[i], i == RANK_TENSOR);
        if (of[i] < ranks->n[i])
            continue;
        ranks->n[i] = of[i] + 1;
        ranks->at[i] = at;
    }
    const long tp = of[RANK_TENSOR], dp = of[RANK_DATA];
    if (tp < 0 || dp < 0)
        return;
    ranks->group_least = ifl_max(ranks->group_least, tp / (dp + 1) + 1);
    if (dp > 0)
        ranks->group_most = ifl_min(ranks->group_most, tp / dp);
}

static int say_count(struct facts *facts, const char *name, long n, struct place at,
                     struct ifl_error *error)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", n);
    return n > 1 ? facts_also(facts, name, text, at, error) : 0;
}

int log_ranks_say(const struct log_ranks *ranks, struct facts *facts, struct ifl_error *error)
{
    static const char *const names[N_RANK_KINDS] = {"tp_ranks", "dp_ranks", "ep_ranks", "pp_ranks"};
    const long n_groups = ranks->n[RANK_DATA];
    const bool has_both = n_groups > 1 && ranks->n[RANK_TENSOR] > 0;
    const bool shares = has_both && ranks->group_least <= ranks->group_most;
    long n[N_RANK_KINDS];
    int code = 0;
    memcpy(n, ranks->n, sizeof n);
    if (shares) /* the last group need not have logged whole */
        n[RANK_TENSOR] = n_groups * ranks->group_least;
    for (size_t i = 0; i < N_RANK_KINDS && code == 0; i++)
        code = say_count(facts, names[i], n[i], ranks->at[i], error);
    if (has_both && code == 0)
        code = facts_also(facts, "ranks_share_attention", shares ? "True" : "False",
                          ranks->at[RANK_DATA], error);
    return code;
}
