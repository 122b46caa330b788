/* inflight trace tokens: tells how many tokens the texts of a trace have, and which. */
#include <stdio.h>

#include "inflight/inputs.h"
#include "inflight/trace.h"

#include "base/data.h"
#include "base/new_file.h"
#include "cli/commands.h"
#include "cli/usage.h"

struct listing {
    struct text_list files;
    const char *tokenizer, *prompt_template, *path;
    long long max_record_mib;
    bool with_ids;
};

static const char *found_or(const char *path, char found[512])
{
    return data_path(path, found) == 0 ? found : path;
}

static int write_tokens(const struct listing *of, const struct ifl_trace_file *file,
                        struct ifl_error *error)
{
    struct new_file out;
    ifl_input_note(file->path); /* its texts are read as the tokens are written */
    ifl_input_note(file->tokenizer);
    if (!of->path) {
        const int rc = ifl_trace_tokens(file, of->with_ids, stdout, error);
        return rc == IFL_E_IO ? ifl_blame_file(error, "standard output") : rc;
    }
    if (new_file_open(&out, of->path, error) < 0)
        return error->code;
    const int rc = ifl_trace_tokens(file, of->with_ids, out.out, error);
    if (rc == IFL_E_IO)
        ifl_blame_file(error, of->path);
    return new_file_close(&out, rc, error);
}

static int trace_tokens(int argc, char **argv)
{
    struct listing of = {.max_record_mib = IFL_MAX_RECORD_MIB};
    char found[512], found_tokenizer[512];
    struct ifl_error error;
    if (options_read(&command_trace_tokens, &of, argc, argv, &of.files) < 0 ||
        cli_check_max_record(command_trace_tokens.name, of.max_record_mib) < 0)
        return 2;
    if (of.files.n != 1 || !of.tokenizer)
        return usage_fail(&command_trace_tokens);
    const struct ifl_trace_file file = {
        .path = found_or(of.files.of[0], found),
        .format = "sharegpt",
        .max_record_mib = (int32_t)of.max_record_mib,
        .tokenizer = found_or(of.tokenizer, found_tokenizer),
        .prompt_template = of.prompt_template,
    };
    return write_tokens(&of, &file, &error) < 0 ? cli_fail(&error) : 0;
}

static const struct option_spec tokens_options[] = {
    {"--tokenizer", "-t", OPTION_TEXT, offsetof(struct listing, tokenizer), "PATH",
     "tokenizer.json, tekken.json, tokenizer.model or a .tiktoken file, or a folder with one",
     COMPLETE_FILE},
    {"--template", NULL, OPTION_TEXT, offsetof(struct listing, prompt_template), "TEXT",
     "text around the first turn, with {} in its place", COMPLETE_NOTHING},
    {"--ids", NULL, OPTION_FLAG, offsetof(struct listing, with_ids), NULL,
     "also write the ids of the tokens", COMPLETE_NOTHING},
    {"--max-record", NULL, OPTION_COUNT, offsetof(struct listing, max_record_mib), "MIB",
     "longest JSON object that is accepted (256)", COMPLETE_NOTHING},
    {"--output", "-o", OPTION_TEXT, offsetof(struct listing, path), "OUT.csv",
     "file for the table (standard output)", COMPLETE_FILE},
};

const struct command command_trace_tokens = {
    .name = "trace tokens",
    .doc = "count the tokens of a trace's texts",
    .arguments = "FILE --tokenizer PATH",
    .example = "inflight trace tokens sharegpt.json --tokenizer tokenizer.json -o tokens.csv",
    .notes = "FILE has conversations in ShareGPT's format. Texts are encoded as they are: no token "
             "is added before or after them.",
    .completion = COMPLETE_FILE,
    .options = tokens_options,
    .n_options = sizeof tokens_options / sizeof *tokens_options,
    .run = trace_tokens,
};
