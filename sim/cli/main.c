/* inflight: a flight simulator for LLM serving policies. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/module.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "inflight/tokenizer.h"

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        usage_list(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("inflight %s\n", INFLIGHT_VERSION);
        return 0;
    }
    if (usage_helped(argc - 1, argv + 1))
        return 0;
    const struct command *command = command_named(argc - 1, (const char *const *)argv + 1);
    if (command) {
        const int n_words = 1 + command_n_words(command);
        return command->run(argc - n_words, argv + n_words);
    }
    const int code = argc == 2 ? usage_fail_group(argv[1]) : -1;
    return code < 0 ? command_fail_unknown(argc - 1, (const char *const *)argv + 1) : code;
}

int main(int argc, char **argv)
{
    array_keep_pages();
    ifl_tokenizer_modules(module_load);
    const int rc = dispatch(argc, argv);
    if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout))) {
        fprintf(stderr, "inflight: cannot write to standard output: %s\n", strerror(errno));
        return 1;
    }
    return rc;
}
