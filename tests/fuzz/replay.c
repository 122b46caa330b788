/* Feeds every file of the folders named to a fuzz target, without a fuzzer. Usage: replay DIR... */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static int replay_file(const char *path)
{
    uint8_t *bytes = NULL;
    size_t n = 0, cap = 0;
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return -1;
    }
    for (int c; (c = getc(file)) != EOF; bytes[n++] = (uint8_t)c)
        if (n == cap && !(bytes = realloc(bytes, cap = 2 * cap + 4096)))
            abort();
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, n);
    free(bytes);
    return 0;
}

/* The number of files replayed, negative if one could not be read. */
static int replay_folder(const char *folder)
{
    char path[4096];
    struct dirent **entries;
    int n_files = 0;
    const int n = scandir(folder, &entries, NULL, alphasort);
    if (n < 0)
        perror(folder);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (n_files >= 0 && entries[i]->d_name[0] != '.')
            n_files = replay_file(path) < 0 ? -1 : n_files + 1;
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return n_files;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const int n_files = replay_folder(argv[i]);
        if (n_files <= 0)
            return fprintf(stderr, "%s: nothing to replay\n", argv[i]), EXIT_FAILURE;
        printf("%s: %d inputs\n", argv[i], n_files);
    }
    return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
