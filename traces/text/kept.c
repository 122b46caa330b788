/* Counts that were made before, in $XDG_CACHE_HOME/inflight/tokens (XDG Base Directory
 * Specification 0.8; without it ~/.cache): a file a key, which a rename puts there whole.
 *
 *     key, 512 bytes | number of counts, 8 bytes | counts, 4 bytes each | CRC-32 of these, 4 bytes
 *
 * in the machine's own byte order. A file with another key, length or checksum counts as none. */
#include "text/count.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define FORMAT "inflight token counts 1"

enum { PATH_BYTES = 1024, CHUNK_BYTES = 1 << 16 };

/* ---- keys ---- */

struct sums {
    unsigned long long n_bytes;
    uLong crc, adler;
};

static bool sum_file(const char *path, struct sums *sums)
{
    unsigned char chunk[CHUNK_BYTES];
    struct stat status;
    ssize_t n = -1;
    *sums = (struct sums){0, crc32(0, NULL, 0), adler32(0, NULL, 0)};
    if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
        return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (n = read(fd, chunk, sizeof chunk)) > 0) {
        sums->n_bytes += (unsigned long long)n;
        sums->crc = crc32(sums->crc, chunk, (uInt)n);
        sums->adler = adler32(sums->adler, chunk, (uInt)n);
    }
    if (fd >= 0)
        close(fd);
    return n == 0;
}

static bool folder(char path[PATH_BYTES])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache && *cache == '/')
        n = snprintf(path, PATH_BYTES, "%s", cache);
    else if (home && *home == '/')
        n = snprintf(path, PATH_BYTES, "%s/.cache", home);
    return n > 0 && n < PATH_BYTES - 128;
}

bool text_key_make(const char *trace, const char *tokenizer, const char *around,
                   struct text_key *key)
{
    char path[PATH_BYTES], versions[128];
    struct sums of_trace, of_tokenizer;
    const char *slash = strrchr(tokenizer, '/');
    const size_t n_around = strlen(around);
    memset(key, 0, sizeof *key);
    if (!folder(path) || !sum_file(trace, &of_trace) || !sum_file(tokenizer, &of_tokenizer))
        return false;
    /* The name of a tokenizer may say how it splits. */
    const int n = snprintf(
        key->text, sizeof key->text,
        FORMAT
        "; trace %llu %08lx %08lx; tokenizer %llu %08lx %08lx %.120s; template %zu %08lx %08lx; %s",
        of_trace.n_bytes, of_trace.crc, of_trace.adler, of_tokenizer.n_bytes, of_tokenizer.crc,
        of_tokenizer.adler, slash ? slash + 1 : tokenizer, n_around,
        crc32(0, (const Bytef *)around, (uInt)n_around),
        adler32(1, (const Bytef *)around, (uInt)n_around),
        text_library_versions(versions, sizeof versions));
    return n > 0 && (size_t)n < sizeof key->text;
}

static uLong sum_text(const struct text_key *key)
{
    return crc32(0, (const Bytef *)key->text, sizeof key->text);
}

static bool file_of(const struct text_key *key, char path[PATH_BYTES])
{
    if (!folder(path))
        return false;
    const size_t n = strlen(path);
    snprintf(path + n, PATH_BYTES - n, "/inflight/tokens/%08lx%08lx", sum_text(key),
             adler32(1, (const Bytef *)key->text, sizeof key->text));
    return true;
}

/* ---- reading ---- */

static uLong sum_all(const struct text_key *key, uint64_t n, const uint32_t *counts)
{
    uLong crc = crc32(sum_text(key), (const Bytef *)&n, sizeof n);
    for (uint64_t i = 0; i < n; i++)
        crc = crc32(crc, (const Bytef *)&counts[i], sizeof *counts);
    return crc;
}

static bool read_counts(FILE *in, const struct text_key *key, uint32_t **counts, size_t *n)
{
    struct text_key found;
    struct stat status;
    uint64_t n_counts;
    uint32_t crc;
    if (fread(&found, sizeof found, 1, in) != 1 || memcmp(&found, key, sizeof found) != 0 ||
        fread(&n_counts, sizeof n_counts, 1, in) != 1 || fstat(fileno(in), &status) < 0 ||
        n_counts > (uint64_t)status.st_size / sizeof **counts)
        return false;
    *n = (size_t)n_counts;
    *counts = malloc((*n + 1) * sizeof **counts);
    return *counts && fread(*counts, sizeof **counts, *n, in) == *n &&
           fread(&crc, sizeof crc, 1, in) == 1 && crc == (uint32_t)sum_all(key, *n, *counts);
}

bool text_kept_read(const struct text_key *key, uint32_t **counts, size_t *n)
{
    char path[PATH_BYTES];
    *counts = NULL;
    *n = 0;
    FILE *in = file_of(key, path) ? fopen(path, "rbe") : NULL;
    if (!in)
        return false;
    const bool whole = read_counts(in, key, counts, n);
    fclose(in);
    if (!whole) {
        free(*counts);
        *counts = NULL;
        *n = 0;
    }
    return whole;
}

/* ---- writing ---- */

static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

void text_kept_write(const struct text_key *key, const uint32_t *counts, size_t n)
{
    char path[PATH_BYTES], part[PATH_BYTES + 16];
    const uint64_t n_counts = n;
    const uint32_t crc = (uint32_t)sum_all(key, n, counts);
    if (!file_of(key, path))
        return;
    make_folders(path);
    snprintf(part, sizeof part, "%s.XXXXXX", path);
    const int fd = mkstemp(part);
    FILE *out = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!out)
        return;
    const bool written =
        fwrite(key, sizeof *key, 1, out) == 1 && fwrite(&n_counts, sizeof n_counts, 1, out) == 1 &&
        fwrite(counts, sizeof *counts, n, out) == n && fwrite(&crc, sizeof crc, 1, out) == 1;
    if (fclose(out) != 0 || !written || rename(part, path) != 0)
        unlink(part);
}
