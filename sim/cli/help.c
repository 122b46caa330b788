/* inflight help: how each command is called. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/usage.h"

struct request {
    struct text_list words;
};

static int run_command(int argc, char **argv)
{
    struct request request = {0};
    struct text_list *words = &request.words;
    if (options_read(&command_help, &request, argc, argv, words) < 0)
        return 2;
    if (usage_explain((int)words->n, (char *const *)words->of) == 0)
        return 0;
    return command_fail_unknown(words->of[0]);
}

const struct command command_help = {
    .name = "help",
    .doc = "how each command is called",
    .arguments = "[COMMAND]",
    .example = "inflight help run",
    .completion = COMPLETE_COMMAND,
    .run = run_command,
};
