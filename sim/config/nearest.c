/* Did you mean ...? Words by their edit distance: insertions, deletions, substitutions and swaps of
 * neighbours, each letter touched once (Damerau 1964, in its optimal string alignment form). */
#include "config/tree.h"

#include <string.h>

enum { MAX_CHARS = 63 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Rows of the table of distances between prefixes; a swap looks two rows back. */
static int distance(const char *a, const char *b)
{
    const size_t n_a = strlen(a), n_b = strlen(b);
    int rows[3][MAX_CHARS + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n_b; j++)
        above[j] = (int)j;
    for (size_t i = 1; i <= n_a; i++) {
        row[0] = (int)i;
        for (size_t j = 1; j <= n_b; j++) {
            row[j] = smaller(above[j], row[j - 1]) + 1;
            row[j] = smaller(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], before[j - 2] + 1);
        }
        int *const oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[n_b];
}

/* "ttft" is short for "ttft_s". */
static const char *longer_word(const char *word, const char *const *candidates, size_t n)
{
    const size_t n_chars = strlen(word);
    for (size_t i = 0; n_chars > 1 && i < n; i++)
        if (strncmp(candidates[i], word, n_chars) == 0 &&
            (candidates[i][n_chars] == '_' || candidates[i][n_chars] == '-'))
            return candidates[i];
    return NULL;
}

const char *nearest_word(const char *word, const char *const *candidates, size_t n)
{
    const size_t n_chars = strlen(word);
    if (n_chars > MAX_CHARS)
        return NULL;
    /* One slip in three letters is a misspelling, more is another word. */
    int least = (n_chars < 6 ? 1 : (int)(n_chars / 3)) + 1;
    const char *best = NULL;
    for (size_t i = 0; i < n; i++) {
        if (strlen(candidates[i]) > MAX_CHARS)
            continue;
        const int apart = distance(word, candidates[i]);
        if (apart < least) {
            least = apart;
            best = candidates[i];
        }
    }
    return best ? best : longer_word(word, candidates, n);
}
