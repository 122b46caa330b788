/* What a server says of itself, from memory: any bytes give a configuration and a report, or one
 * error, and the same ones again. The first byte says what the others are: c a command line or a
 * manifest, a an answer of the server, else a log. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

enum { MOST_BYTES = 1 << 14 };

/* The report of what was read, or the error. The caller frees it. */
static char *read_sources(const struct import_sources *sources)
{
    struct facts facts = {0};
    struct node *root = NULL;
    struct ifl_error error = {0};
    char *text = NULL;
    size_t n_text = 0;
    FILE *out = open_memstream(&text, &n_text);
    ifl_require(out);
    if (import_read(sources, &facts, &root, &error) == 0) {
        import_report(&facts, root, "", out);
        ifl_require(tree_print(root, out, &error) == 0);
    } else {
        ifl_require(error.code < 0 && *error.text);
        fputs(error.text, out);
    }
    ifl_require(fclose(out) == 0);
    facts_free(&facts);
    tree_free(root);
    return text;
}

static void read_twice(const struct import_sources *sources)
{
    char *once = read_sources(sources), *again = read_sources(sources);
    ifl_require(strcmp(once, again) == 0);
    free(once);
    free(again);
}

static void read_log(const char *text, size_t n)
{
    char path[32];
    const char *const logs[] = {path};
    FILE *file = tmpfile();
    ifl_require(file && fwrite(text, 1, n, file) == n && fflush(file) == 0);
    snprintf(path, sizeof path, "/dev/fd/%d", fileno(file));
    read_twice(&(struct import_sources){.logs = logs, .n_logs = 1});
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes == 0 || n_bytes > MOST_BYTES)
        return 0;
    char *text = strndup((const char *)bytes + 1, n_bytes - 1);
    ifl_require(text);
    const struct import_answer answer = {"an answer", (const char *)bytes + 1, n_bytes - 1};
    if (bytes[0] == 'c')
        read_twice(&(struct import_sources){.command.text = text});
    else if (bytes[0] == 'a')
        read_twice(&(struct import_sources){.answers = &answer, .n_answers = 1});
    else
        read_log((const char *)bytes + 1, n_bytes - 1);
    free(text);
    return 0;
}
