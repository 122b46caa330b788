#include "plot/imprint.h"

#include <stdbool.h>
#include <string.h>
#include <zlib.h>

#include "inflight/minmax.h"
#include "tables/whole_file.h"

struct bytes {
    char *at; /* owned, ended by a NUL that is not counted */
    size_t n;
};

struct imprint {
    const char *title, *source;
};

static int read_open(FILE *file, const char *path, struct bytes *bytes, struct ifl_error *error)
{
    size_t cap = 1 << 16, n = 1;
    for (*bytes = (struct bytes){malloc(cap), 0}; bytes->at && n; bytes->n += n) {
        if (cap - bytes->n < 2) {
            char *wider = realloc(bytes->at, cap *= 2);
            if (!wider)
                free(bytes->at);
            bytes->at = wider;
        }
        n = bytes->at ? fread(bytes->at + bytes->n, 1, cap - bytes->n - 1, file) : 0;
    }
    if (!bytes->at)
        return ifl_fail_nomem(error);
    bytes->at[bytes->n] = '\0';
    if (!ferror(file))
        return IFL_OK;
    free(bytes->at);
    return whole_fail_on(path, "read", error);
}

static int read_file(const char *path, struct bytes *bytes, struct ifl_error *error)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return whole_fail_on(path, "open", error);
    const int code = read_open(file, path, bytes, error);
    fclose(file);
    return code == IFL_E_NOMEM ? ifl_blame_file(error, path) : code;
}

static void put(FILE *to, const char *from, const char *end)
{
    fwrite(from, 1, (size_t)(end - from), to);
}

/* ---- PDF: an incremental update (ISO 32000-1, 7.5.6) that replaces the information dictionary
 * ---- */

static void put_pdf_text(FILE *to, const char *key, const char *text)
{
    fprintf(to, "   /%s (", key);
    for (; *text; text++) {
        if (*text == '(' || *text == ')' || *text == '\\')
            putc('\\', to);
        putc((unsigned char)*text < 128 ? *text : '?', to);
    }
    fputs(")\n", to);
}

static const char *last_of(const struct bytes *bytes, const char *word)
{
    const size_t n = strlen(word);
    for (size_t i = bytes->n; i-- > 0;)
        if (bytes->n - i >= n && memcmp(bytes->at + i, word, n) == 0)
            return bytes->at + i;
    return NULL;
}

static bool number_behind(const char *text, const char *word, long *number)
{
    const char *at = text ? strstr(text, word) : NULL;
    return at && sscanf(at + strlen(word), "%ld", number) == 1;
}

/* Overwrites cairo's date with spaces, so that equal data give equal bytes. */
static void blank_date(struct bytes *of)
{
    const char *key = last_of(of, "/CreationDate (");
    const char *end = key ? strchr(key, ')') : NULL;
    if (end)
        memset(of->at + (key - of->at), ' ', (size_t)(end + 1 - key));
}

static void put_pdf(FILE *to, struct bytes *of, const struct imprint *imprint)
{
    blank_date(of);
    const char *trailer = last_of(of, "trailer");
    long size, root, info, previous;
    put(to, of->at, of->at + of->n);
    if (!number_behind(trailer, "/Size", &size) || !number_behind(trailer, "/Root", &root) ||
        !number_behind(trailer, "/Info", &info) || !number_behind(trailer, "startxref", &previous))
        return;
    const size_t object_at = of->n;
    fprintf(to, "%ld 0 obj\n<< /Creator (gnuplot for inflight)\n", info);
    put_pdf_text(to, "Title", imprint->title);
    put_pdf_text(to, "Subject", imprint->source);
    put_pdf_text(to, "Keywords", imprint->source);
    fputs(">>\nendobj\n", to);
    const long table_at = ftell(to);
    fprintf(to, "xref\n%ld 1\n%010zu 00000 n \n", info, object_at);
    fprintf(to, "trailer\n<< /Size %ld\n   /Root %ld 0 R\n   /Info %ld 0 R\n   /Prev %ld\n>>\n",
            size, root, info, previous);
    fprintf(to, "startxref\n%ld\n%%%%EOF\n", table_at);
}

/* ---- SVG: gnuplot's own title and desc are replaced ---- */

static void put_xml_text(FILE *to, const char *text)
{
    for (; *text; text++)
        if (*text == '&')
            fputs("&amp;", to);
        else if (*text == '<')
            fputs("&lt;", to);
        else
            putc((unsigned char)*text < ' ' ? ' ' : *text, to); /* XML 1.0, 2.2: no characters */
}

static const char *replace_element(FILE *to, const char *from, const char *begin, const char *end,
                                   const char *text)
{
    const char *first = strstr(from, begin), *last = first ? strstr(first, end) : NULL;
    if (!last)
        return from;
    put(to, from, first + strlen(begin));
    put_xml_text(to, text);
    return last;
}

static void put_svg(FILE *to, struct bytes *of, const struct imprint *imprint)
{
    const char *at = replace_element(to, of->at, "<title>", "</title>", imprint->title);
    at = replace_element(to, at, "<desc>", "</desc>", imprint->source);
    put(to, at, of->at + of->n);
}

/* ---- PNG: text chunks behind the header, which is 8 + 25 bytes long ---- */

enum { PNG_HEADER_BYTES = 33 };

static void put_u32(FILE *to, unsigned long value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        putc((int)(value >> shift & 255), to);
}

/* iTXt: keyword, NUL, not compressed (two bytes), no language, no translated keyword, UTF-8 text.
 */
static void put_png_text(FILE *to, const char *keyword, const char *text)
{
    char chunk[1024] = "iTXt";
    size_t n = 4 + (size_t)snprintf(chunk + 4, sizeof chunk - 4, "%s", keyword) + 5;
    const size_t n_text = strnlen(text, sizeof chunk - n);
    memcpy(chunk + n, text, n_text);
    n += n_text;
    put_u32(to, (unsigned long)n - 4);
    put(to, chunk, chunk + n);
    put_u32(to, crc32(0, (const Bytef *)chunk, (uInt)n));
}

static void put_png(FILE *to, struct bytes *of, const struct imprint *imprint)
{
    const size_t head = ifl_min(of->n, PNG_HEADER_BYTES);
    put(to, of->at, of->at + head);
    if (head == PNG_HEADER_BYTES) {
        put_png_text(to, "Title", imprint->title);
        put_png_text(to, "Description", imprint->source);
    }
    put(to, of->at + head, of->at + of->n);
}

/* ---- LaTeX: what it needs and comes from in comments, and the name of the picture ---- */

static void put_comment(FILE *to, const char *text)
{
    fputs("% ", to);
    for (; *text; text++)
        putc((unsigned char)*text < ' ' ? ' ' : *text, to);
    putc('\n', to);
}

/* gnuplot includes the picture by the path under which it was drawn, and leaves the size of its
 * text to the document. */
static void put_tex(FILE *to, struct bytes *of, const struct imprint *imprint)
{
    const char *includes = last_of(of, "\\includegraphics["),
               *begin = includes ? strstr(includes, "]{") : NULL,
               *end = begin ? strchr(begin, '}') : NULL;
    put_comment(to, "\\usepackage{graphicx,color}");
    put_comment(to, imprint->title);
    put_comment(to, imprint->source);
    fputs("\\begingroup\\fontsize{8}{9.6}\\selectfont\n", to);
    if (!end)
        end = of->at;
    else
        put(to, of->at, begin + 2);
    fputs(end == of->at ? "" : imprint->title, to);
    fputs(end == of->at ? "" : "-tex", to);
    put(to, end, of->at + of->n);
    fputs("\\endgroup\n", to);
}

/* ---- a file after another ---- */

typedef void put_fn(FILE *to, struct bytes *of, const struct imprint *imprint);

static int rewrite(const char *path, const struct bytes *marked, struct ifl_error *error)
{
    struct whole_file file;
    if (whole_open(&file, path, error))
        return error->code;
    char *room = whole_room(&file, marked->n, error);
    if (room) {
        memcpy(room, marked->at, marked->n);
        whole_commit(&file, room + marked->n);
    }
    return whole_finish(&file, room ? IFL_OK : error->code, error);
}

static int imprint_one(const char *drawn, const char *path, put_fn *mark,
                       const struct imprint *imprint, struct ifl_error *error)
{
    struct bytes of, marked = {0};
    if (read_file(drawn, &of, error))
        return error->code;
    FILE *to = open_memstream(&marked.at, &marked.n);
    if (to)
        mark(to, &of, imprint);
    free(of.at);
    const int code = to && fclose(to) == 0 ? rewrite(path, &marked, error) : ifl_fail_nomem(error);
    free(marked.at);
    return code;
}

struct drawn_format {
    const char *drawn, *marked; /* behind the figure's name */
    put_fn *mark;
};

static int imprint_formats(const char *out_dir, const struct imprint *imprint,
                           const struct drawn_format *formats, size_t n, struct ifl_error *error)
{
    int code = IFL_OK;
    for (size_t i = 0; i < n && !code; i++) {
        char drawn[4096], path[4096];
        snprintf(drawn, sizeof drawn, "%s/%s%s", out_dir, imprint->title, formats[i].drawn);
        snprintf(path, sizeof path, "%s/%s%s", out_dir, imprint->title, formats[i].marked);
        code = imprint_one(drawn, path, formats[i].mark, imprint, error);
    }
    return code;
}

int imprint_all(const char *out_dir, const char *figure, const char *source,
                struct ifl_error *error)
{
    static const struct drawn_format formats[] = {{".tmp.pdf", ".pdf", put_pdf},
                                                  {".tmp.svg", ".svg", put_svg},
                                                  {".tmp.png", ".png", put_png}};
    const struct imprint imprint = {figure, source};
    return imprint_formats(out_dir, &imprint, formats, sizeof formats / sizeof *formats, error);
}

int imprint_latex(const char *out_dir, const char *figure, const char *source,
                  struct ifl_error *error)
{
    static const struct drawn_format formats[] = {{"-tex.tmp.pdf", "-tex.pdf", put_pdf},
                                                  {"-tex.tmp.tex", ".tex", put_tex}};
    const struct imprint imprint = {figure, source};
    return imprint_formats(out_dir, &imprint, formats, sizeof formats / sizeof *formats, error);
}
