/* libsentencepiece is C++; this is all of it that C sees. No exception leaves the file. */
#include "text/sentencepiece.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <sentencepiece_processor.h>
#include <string>
#include <vector>

struct text_sentencepiece {
    sentencepiece::SentencePieceProcessor processor;
    bool has_bytes = false; /* for letters that are in no piece */
};

static text_sentencepiece *model_open(const char *bytes, size_t n_bytes, char *why, size_t size)
{
    try {
        std::unique_ptr<text_sentencepiece> model(new text_sentencepiece);
        const auto status =
            model->processor.LoadFromSerializedProto(absl::string_view(bytes, n_bytes));
        for (int id = 0; status.ok() && id < model->processor.GetPieceSize(); id++)
            model->has_bytes = model->has_bytes || model->processor.IsByte(id);
        if (status.ok())
            return model.release();
        std::snprintf(why, size, "%s", status.error_message());
    } catch (const std::exception &e) {
        std::snprintf(why, size, "%s", e.what());
    } catch (...) {
        std::snprintf(why, size, "unknown error");
    }
    return nullptr;
}

static void model_close(text_sentencepiece *model)
{
    delete model;
}

static int model_encode(const text_sentencepiece *model, const char *text, size_t n_bytes,
                        int (*take)(void *self, const int *ids, size_t n), void *self)
{
    try {
        std::vector<int> ids;
        if (!model->processor.Encode(absl::string_view(text, n_bytes), &ids).ok())
            return -1;
        return take(self, ids.data(), ids.size());
    } catch (...) {
        return -1;
    }
}

static int model_n(const text_sentencepiece *model)
{
    return model->processor.GetPieceSize();
}

static const char *model_piece(const text_sentencepiece *model, int id, size_t *n)
{
    const std::string &piece = model->processor.IdToPiece(id);
    *n = piece.size();
    return piece.c_str();
}

/* The numbers of enum text_piece. */
static int model_kind(const text_sentencepiece *model, int id)
{
    const auto &processor = model->processor;
    return processor.IsControl(id) ? 1 : processor.IsUnknown(id) ? 2 : processor.IsByte(id) ? 3 : 0;
}

static double model_score(const text_sentencepiece *model, int id)
{
    return model->processor.GetScore(id);
}

static bool model_is_unused(const text_sentencepiece *model, int id)
{
    return model->processor.IsUnused(id);
}

static int model_begin(const text_sentencepiece *model)
{
    return model->processor.bos_id();
}

static bool model_drops_blank(const text_sentencepiece *model)
{
    const auto &processor = model->processor;
    try {
        std::vector<int> ids;
        std::string text;
        if (!processor.Encode("a a", &ids).ok() || ids.empty() ||
            !processor.Decode(std::vector<int>(1, ids[0]), &text).ok())
            return false;
        return processor.IdToPiece(ids[0]).compare(0, 3, TEXT_BLANK) == 0 &&
               (text.empty() || text[0] != ' ');
    } catch (...) {
        return false;
    }
}

/* Only unigram models list segmentations (model_interface.h, IsNBestEncodeAvailable). */
static bool model_is_unigram(const text_sentencepiece *model)
{
    try {
        std::vector<std::vector<int>> ids;
        return model->processor.NBestEncode("a", 1, &ids).ok();
    } catch (...) {
        return false;
    }
}

/* The text as the model normalises it; a byte that stands for an unknown letter is written <0xFF>.
 */
static bool make_normal(const text_sentencepiece *model, absl::string_view text,
                        std::string *normal)
{
    const auto &processor = model->processor;
    std::vector<std::string> pieces;
    if (!model->has_bytes) {
        if (!processor.Encode(text, &pieces).ok())
            return false;
        for (const std::string &piece : pieces)
            *normal += piece;
        return true;
    }
    std::vector<int> ids;
    if (!processor.Encode(text, &ids).ok())
        return false;
    for (const int id : ids) {
        const std::string &piece = processor.IdToPiece(id);
        if (processor.IsByte(id))
            *normal += static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16));
        else
            *normal += piece;
    }
    return true;
}

static bool model_keeps_ascii(const text_sentencepiece *model)
{
    try {
        std::string text, normal;
        for (char left = '!'; left <= '~'; left++)
            for (char right = '!'; right <= '~'; right++)
                text += {left, right};
        return make_normal(model, text, &normal) && normal == TEXT_BLANK + text;
    } catch (...) {
        return false;
    }
}

static int model_normal(const text_sentencepiece *model, const char *text, size_t n_bytes,
                        int (*take)(void *self, const char *normal, size_t n), void *self)
{
    try {
        std::string normal;
        if (!make_normal(model, absl::string_view(text, n_bytes), &normal))
            return -1;
        return take(self, normal.data(), normal.size());
    } catch (...) {
        return -1;
    }
}

static bool model_by_words(const text_sentencepiece *model)
{
    static const std::string blank = TEXT_BLANK;
    const auto &processor = model->processor;
    try {
        std::vector<std::string> pieces;
        if (processor.IsUnknown(processor.PieceToId(blank)) ||
            !processor.Encode("a", &pieces).ok() || pieces.empty() ||
            pieces[0].compare(0, blank.size(), blank) != 0)
            return false;
        for (int id = 0; id < processor.GetPieceSize(); id++) {
            const std::string &piece = processor.IdToPiece(id);
            const float score = processor.GetScore(id);
            size_t letter = 0;
            while (piece.compare(letter, blank.size(), blank) == 0)
                letter += blank.size();
            if (score != std::floor(score) || piece.find(blank, letter) != std::string::npos)
                return false;
        }
        return true;
    } catch (...) {
        return false;
    }
}

const text_sentencepiece_module inflight_sentencepiece = {
    sizeof inflight_sentencepiece,
    model_open,
    model_close,
    model_encode,
    model_n,
    model_by_words,
    model_is_unigram,
    model_keeps_ascii,
    model_normal,
    model_piece,
    model_score,
    model_is_unused,
    model_kind,
    model_drops_blank,
    model_begin,
};
