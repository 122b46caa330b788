/* Texts by a unigram model of SentencePiece: its best segmentation by Viterbi's algorithm (Kudo
 * 2018, arXiv:1804.10959), with the sums and the comparisons of EncodeOptimized (unigram_model.cc
 * of SentencePiece 0.1.97 to 0.2.0). Sums are float and depend on where they begin, and of several
 * segmentations that are equal but for it the library takes one by it; so a text is encoded as a
 * whole. Words that its rules leave as they are are copied; the library makes the others normal. */
#include "text/text.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "inflight/minmax.h"

#define NOWHERE UINT32_MAX

/* ---- the model ---- */

/* A piece like <0xFF>. */
static void add_byte(struct text_unigram *unigram, const char *piece, int id)
{
    unigram->id_of_byte[strtoul(piece + 1, NULL, 16) & 0xff] = (uint32_t)id;
    unigram->n_bytes++;
}

/* 1: the piece is in the trie, or is none of a text. 0: it is a symbol of its own, which is cut out
 * before; its score is 0 (trainer_interface.cc, InitMetaPieces). */
static int add_piece(struct text_unigram *unigram, const struct text_sentencepiece *library, int id,
                     struct ifl_error *error)
{
    char text[TEXT_MAX_TOKEN_BYTES];
    size_t n;
    const char *piece = text_sentencepiece_piece(library, id, &n);
    const double score = text_sentencepiece_score(library, id);
    const enum text_piece kind = text_sentencepiece_kind(library, id);
    if (kind == TEXT_PIECE_UNKNOWN)
        unigram->unknown = (uint32_t)id;
    if (kind == TEXT_PIECE_BYTE)
        add_byte(unigram, piece, id);
    if (kind != TEXT_PIECE_TEXT || text_sentencepiece_is_unused(library, id))
        return 1;
    if (score >= 0 || n > sizeof text || memchr(piece, ' ', n))
        return 0;
    unigram->unknown_score = fminf(unigram->unknown_score, (float)score);
    n = text_with_blanks(piece, n, text);
    const int rc = text_trie_add(&unigram->trie, text, n, (uint32_t)id, score, error);
    return rc < 0 ? rc : 1;
}

struct probe {
    char normal[32];
    size_t n;
};

static int take_probe(void *self, const char *normal, size_t n)
{
    struct probe *probe = self;
    if (n > sizeof probe->normal)
        return 1;
    memcpy(probe->normal, normal, n);
    probe->n = n;
    return 0;
}

static bool becomes(const struct text_sentencepiece *library, const char *text, const char *normal)
{
    struct probe probe = {0};
    char found[sizeof probe.normal];
    if (text_sentencepiece_normal(library, text, strlen(text), take_probe, &probe) != 0)
        return false;
    const size_t n = text_with_blanks(probe.normal, probe.n, found);
    return n == strlen(normal) && memcmp(found, normal, n) == 0;
}

/* Whether blanks, as many as come, are one between two letters, or stay as they are. */
static void probe_blanks(const struct text_sentencepiece *library, const char *blanks, bool *joined,
                         bool *kept)
{
    const size_t n = strlen(blanks);
    char text[16] = " a", end[16];
    memcpy(text + 2, blanks, n);
    memcpy(end, text, n + 2);
    end[n + 2] = '\0';
    memcpy(text + 2 + n, "a", 2);
    *joined = *joined && becomes(library, text + 1, " a a");
    *kept = *kept && becomes(library, text + 1, text) && becomes(library, end + 1, end);
    text[1] = ' '; /* ' ', blanks, "a": the library puts the first one there */
    *kept = *kept && becomes(library, text + 2, text + 1);
}

/* All of one, two and three blanks. */
static void read_blanks(struct text_unigram *unigram, const struct text_sentencepiece *library)
{
    static const char blanks[] = " \n\t";
    bool joined = true, kept = true;
    for (unsigned i = 1; i < 4 * 4 * 4; i++) {
        char some[4] = "";
        size_t n = 0;
        for (unsigned rest = i; rest > 0; rest /= 4)
            if (rest % 4 > 0)
                some[n++] = blanks[rest % 4 - 1];
        probe_blanks(library, some, &joined, &kept);
    }
    for (const char *letter = blanks; *letter; letter++) {
        unigram->joins[(unsigned char)*letter] = joined;
        unigram->keeps[(unsigned char)*letter] = kept;
    }
    for (int letter = 0; letter < 128; letter++)
        unigram->keeps[letter] = unigram->keeps[letter] || text_is_seen((char)letter);
    unigram->joins[' '] = true; /* a single one */
}

static int read_model(struct text_unigram *unigram, const struct text_sentencepiece *library,
                      struct ifl_error *error)
{
    const int n = text_sentencepiece_n(library);
    int rc = 1;
    for (int id = 0; rc > 0 && id < n; id++)
        rc = add_piece(unigram, library, id, error);
    unigram->unknown_score -= 10; /* kUnkPenalty */
    if (rc > 0)
        read_blanks(unigram, library);
    return rc;
}

int text_read_unigram(struct ifl_tokenizer *tokenizer, struct ifl_error *error)
{
    const struct text_sentencepiece *library = tokenizer->sentencepiece;
    if (!text_sentencepiece_is_unigram(library) || !text_sentencepiece_keeps_ascii(library))
        return 0;
    struct text_unigram *unigram = calloc(1, sizeof *unigram);
    if (!unigram)
        return ifl_fail_nomem(error);
    unigram->unknown = TEXT_NO_ID;
    unigram->unknown_score = FLT_MAX;
    const int rc = read_model(unigram, library, error);
    if (rc > 0 && unigram->unknown != TEXT_NO_ID && unigram->trie.n > 0 &&
        unigram->n_bytes % 256 == 0) {
        tokenizer->unigram = unigram;
        return 0;
    }
    text_unigram_free(unigram);
    return ifl_min(rc, 0);
}

void text_unigram_free(struct text_unigram *unigram)
{
    if (unigram)
        text_trie_free(&unigram->trie);
    free(unigram);
}

/* ---- the normal text ---- */

/* Words of a text that are made normal together: [from, to) of it, the next ones from `next` on. */
struct words {
    size_t from, to, next;
    bool are_plain;
};

/* The end of what stands between two words, from `at` on; `at` if the words do not end there. */
static size_t end_of_blanks(const struct text_unigram *unigram, const char *text, size_t at,
                            size_t n)
{
    size_t end = at;
    while (end < n && (unsigned char)text[end] < 0x80 && unigram->joins[(unsigned char)text[end]])
        end++;
    const bool is_single = end == at + 1 && text[at] == ' ';
    const bool is_end = end < n && text_is_seen(text[end]) && text_is_seen(text[at - 1]) &&
                        (is_single || unigram->joins['\n']);
    return is_end ? end : at;
}

static struct words words_from(const struct text_unigram *unigram, const char *text, size_t from,
                               size_t n)
{
    struct words words = {from, n, n, true};
    for (size_t i = from; i < n; i++) {
        const size_t end =
            text_is_seen(text[i]) || i == from ? i : end_of_blanks(unigram, text, i, n);
        if (end > i) {
            words.to = i;
            words.next = end;
            break;
        }
        words.are_plain =
            words.are_plain && (unsigned char)text[i] < 0x80 && unigram->keeps[(unsigned)text[i]];
    }
    return words;
}

struct normal {
    struct text_unigram_room *room;
    struct ifl_error *error;
};

static int take_normal(void *self, const char *normal, size_t n)
{
    const struct normal *to = self;
    struct text_unigram_room *room = to->room;
    if (trace_reserve(&room->normal, &room->cap_normal, room->n_normal + n, 1, to->error) < 0)
        return 1;
    room->n_normal += text_with_blanks(normal, n, room->normal + room->n_normal);
    return 0;
}

static int put_words(const struct ifl_tokenizer *tokenizer, struct text_unigram_room *room,
                     const char *text, const struct words *words, struct ifl_error *error)
{
    const size_t n = words->to - words->from;
    struct normal to = {room, error};
    if (!words->are_plain) {
        const int rc = text_sentencepiece_normal(tokenizer->sentencepiece, text + words->from, n,
                                                 take_normal, &to);
        return rc > 0 ? error->code : rc == 0;
    }
    if (trace_reserve(&room->normal, &room->cap_normal, room->n_normal + n + 1, 1, error) < 0)
        return error->code;
    room->normal[room->n_normal++] = ' ';
    memcpy(room->normal + room->n_normal, text + words->from, n);
    room->n_normal += n;
    return 1;
}

/* 1: the text is normal. 0: half of it is the library's, which had better take all. */
static int normalise(const struct ifl_tokenizer *tokenizer, struct text_unigram_room *room,
                     const char *text, size_t n, struct ifl_error *error)
{
    size_t n_odd = 0;
    int rc = 1;
    room->n_normal = 0;
    for (size_t at = 0; rc > 0 && at < n;) {
        const struct words words = words_from(tokenizer->unigram, text, at, n);
        n_odd += words.are_plain ? 0 : words.to - words.from;
        rc = 2 * n_odd < n ? put_words(tokenizer, room, text, &words, error) : 0;
        at = words.next;
    }
    return rc;
}

/* ---- its pieces ---- */

/* The best segmentation that ends here: its last piece. */
struct text_best {
    float score;
    uint32_t from, id;
};

static void offer(struct text_best *best, double score, size_t from, uint32_t id)
{
    if (best->from == NOWHERE || score > (double)best->score)
        *best = (struct text_best){(float)score, (uint32_t)from, id};
}

/* Bytes of the character that the byte begins, as the library counts them (util.h, OneCharLen); a
 * blank stands for one of its characters. */
static size_t length_of(char first)
{
    static const unsigned char lengths[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    return lengths[(unsigned char)first >> 4];
}

/* Offers all pieces that begin at `from`; the length of the character that is there. */
static size_t offer_pieces(const struct text_unigram *unigram, struct text_best *best,
                           const char *text, size_t n, size_t from)
{
    const struct text_trie *trie = &unigram->trie;
    const float before = best[from].score;
    const size_t length = ifl_min(length_of(text[from]), n - from);
    uint32_t node = trie->first[(unsigned char)text[from]];
    bool is_known = false;
    for (size_t end = from + 1; node != 0; end++) {
        const struct text_node *piece = &trie->nodes[node];
        if (piece->id != TEXT_NO_ID) {
            offer(&best[end], piece->score + (double)before, from, piece->id);
            is_known = is_known || end == from + length;
        }
        node = end < n ? text_trie_next(trie, node, text[end]) : 0;
    }
    if (!is_known) {
        const float score = unigram->unknown_score + before;
        offer(&best[from + length], (double)score, from, unigram->unknown);
    }
    return length;
}

/* Puts the ids of an unknown character's bytes before ids[at]: where they begin. */
static size_t put_bytes(const struct text_unigram *unigram, const char *letter, size_t n,
                        uint32_t *ids, size_t at)
{
    const char *bytes = *letter == ' ' ? TEXT_BLANK : letter;
    for (size_t i = *letter == ' ' ? sizeof TEXT_BLANK - 1 : n; i > 0; i--)
        ids[--at] = unigram->id_of_byte[(unsigned char)bytes[i - 1]];
    return at;
}

/* The ids of the pieces from the last to the first, at the end of the room for them: where they
 * begin. Unknown characters in a row are one id where they have no bytes. */
static size_t collect(const struct text_unigram *unigram, const struct text_best *best,
                      const char *text, size_t n, uint32_t *ids, size_t room)
{
    size_t at = room;
    for (size_t end = n; end > 0; end = best[end].from) {
        const uint32_t id = best[end].id;
        const size_t from = best[end].from;
        if (id == unigram->unknown && unigram->n_bytes > 0)
            at = put_bytes(unigram, text + from, end - from, ids, at);
        else if (id != unigram->unknown || at == room || ids[at] != id)
            ids[--at] = id;
    }
    return at;
}

static int encode_normal(const struct text_unigram *unigram, struct text_unigram_room *room,
                         struct text_ids *ids, struct ifl_error *error)
{
    const size_t n = room->n_normal;
    if (trace_reserve(&room->best, &room->cap_best, n + 1, sizeof *room->best, error) < 0)
        return error->code;
    struct text_best *best = room->best;
    best[0].score = 0;
    for (size_t i = 1; i <= n; i++)
        best[i].from = NOWHERE;
    for (size_t from = 0; from < n;)
        from += offer_pieces(unigram, best, room->normal, n, from);
    size_t most = 0;
    for (size_t end = n; end > 0; end = best[end].from)
        most += 4; /* an unknown character of four bytes */
    if (trace_reserve(&ids->of, &ids->cap, ids->n + most, sizeof *ids->of, error) < 0)
        return error->code;
    uint32_t *own = ids->of + ids->n;
    const size_t at = collect(unigram, best, room->normal, n, own, most);
    memmove(own, own + at, (most - at) * sizeof *own);
    ids->n += most - at;
    return 1;
}

int text_unigram_encode(const struct ifl_tokenizer *tokenizer, struct text_unigram_room *room,
                        const char *text, size_t n, struct text_ids *ids, struct ifl_error *error)
{
    const int rc = normalise(tokenizer, room, text, n, error);
    return rc > 0 ? encode_normal(tokenizer->unigram, room, ids, error) : rc;
}
