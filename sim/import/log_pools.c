#include "import/log_pools.h"

#include <stdlib.h>
#include <string.h>

#include "import/settle.h"

static const char *const counts[] = {"num_tokens", "num_gpu_blocks"};
enum { N_COUNTS = sizeof counts / sizeof *counts };

void log_pools_see(struct log_pools *pools, const char *line)
{
    const bool starts = strstr(line, "Using LLM with ") || strstr(line, " LLM version: ");
    pools->is_closed = pools->is_closed || (pools->has_any && starts);
}

/* A count that the line says, and an earlier one of the file says otherwise. */
static bool is_another(const struct facts *facts, const char *count, const char *text, size_t n,
                       const char *file)
{
    const struct fact *before = facts_get(facts, count);
    return before && before->at.file == file &&
           (strlen(before->value) != n || strncmp(before->value, text, n) != 0);
}

static bool is_second(const struct facts *facts, const struct log_line *of, const char *line,
                      const regmatch_t *groups, const char *file)
{
    for (size_t i = 0; i < MAX_LINE_FACTS; i++)
        for (size_t k = 0; k < N_COUNTS && of->facts[i]; k++)
            if (strcmp(of->facts[i], counts[k]) == 0 &&
                is_another(facts, counts[k], line + groups[i + 1].rm_so,
                           (size_t)(groups[i + 1].rm_eo - groups[i + 1].rm_so), file))
                return true;
    return false;
}

int log_pools_take(struct log_pools *pools, struct facts *facts, const struct log_line *of,
                   const char *line, const regmatch_t *groups, struct place at,
                   struct ifl_error *error)
{
    const bool is_end = strcmp(of->facts[0], "num_tokens") == 0;
    int code = 0;
    if (pools->is_whole && !pools->is_closed && trtllm_is_pytorch(facts, true) &&
        is_second(facts, of, line, groups, at.file)) {
        facts_forget(facts, counts, N_COUNTS, at.file, "of the run that measures memory");
        code = facts_say(facts, "memory_measured", "max", at, false, error);
        pools->is_closed = true;
    }
    pools->has_any = true;
    pools->is_whole = pools->is_whole || is_end;
    return code;
}
