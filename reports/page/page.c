/* Reads the runs, and writes the page: style, body, data, script. */
#include "inflight/page.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"
#include "page/parts.h"
#include "page/run.h"
#include "tables/run_dir.h"
#include "tables/whole_file.h"

/* ---- the data as JSON ---- */

static void close_runs(struct page *page)
{
    for (size_t i = 0; page->runs && i < page->n_runs; i++)
        sheet_free(&page->runs[i].summary);
    free(page->runs);
    json_decref(page->root);
}

static int open_runs(struct page *page)
{
    const struct ifl_page_options *options = page->options;
    page->root = json_object();
    page->runs = calloc(options->n_runs, sizeof *page->runs);
    if (!page->root || !page->runs)
        return ifl_fail_nomem(page->error);
    const size_t most = ifl_max(IFL_PAGE_POINTS / options->n_runs, 1);
    for (; page->n_runs < options->n_runs; page->n_runs++) {
        struct page_run *run = &page->runs[page->n_runs];
        char path[4096];
        run->dir = options->run_dirs[page->n_runs];
        run->is_search = page_has_file(run, "capacity.csv", path);
        if (!run->is_search && run_dir_check(run->dir, page->error))
            return page->error->code;
        if (page_has_file(run, "summary.csv", path))
            run->is_search = false;
        else if (run->is_search)
            page_has_file(run, "capacity.csv", path);
        if (run->is_search ? sheet_read(&run->summary, path, page->error)
                           : sheet_read_points(&run->summary, path, page->error))
            return page->error->code;
        run->n_points = ifl_min(run->summary.n_rows, most);
        page->n_points += run->n_points;
    }
    page->n_points = ifl_max(page->n_points, 1);
    return IFL_OK;
}

static int put_search(const struct page *page, struct page_run *run, json_t *searches)
{
    run->json = json_object();
    return page_append(page, searches, run->json) ? page->error->code
                                                  : page_put_capacities(page, run);
}

static int put_run(const struct page *page, struct page_run *run, json_t *runs)
{
    run->json = json_object();
    if (page_append(page, runs, run->json) || page_put_summary(page, run) ||
        page_put_quantiles(page, run) || page_put_requests(page, run) || page_put_steps(page, run))
        return page->error->code;
    return page_put_recorded(page, run);
}

static int put_all(const struct page *page)
{
    json_t *runs = json_array(), *searches = json_array();
    if (page_set(page, page->root, "searches", searches) ||
        page_set(page, page->root, "version", page_text(page->options->version)) ||
        page_set(page, page->root, "from_s", json_real(page->options->from_s)) ||
        page_set(page, page->root, "runs", runs))
        return page->error->code;
    for (size_t i = 0; i < page->n_runs; i++)
        if (page->runs[i].is_search ? put_search(page, &page->runs[i], searches)
                                    : put_run(page, &page->runs[i], runs))
            return page->error->code;
    return page_put_differences(page);
}

/* ---- the file ---- */

struct writing {
    struct whole_file file;
    struct ifl_error *error;
};

/* JSON has "<" in strings only. There it would end the script, or open a comment. */
static int write_json(const char *text, size_t n, void *context)
{
    struct writing *to = context;
    static const char less_than[] = "\\u003c";
    char *at = whole_room(&to->file, n * (sizeof less_than - 1), to->error);
    if (!at)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (text[i] == '<')
            at = stpcpy(at, less_than);
        else
            *at++ = text[i];
    whole_commit(&to->file, at);
    return 0;
}

static int write_data(const struct page *page, struct writing *to)
{
    *page->error = (struct ifl_error){0};
    if (json_dump_callback(page->root, write_json, to, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0)
        return IFL_OK;
    return page->error->code ? page->error->code : ifl_fail_nomem(page->error);
}

static int write_page(const struct page *page, struct writing *to)
{
    static const char before[] = "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                                 "<meta name=\"viewport\" content=\"width=device-width\">\n"
                                 "<title>inflight</title>\n<style>\n";
    static const char data[] = "<script type=\"application/json\" id=\"data\">";
    int code = whole_write(&to->file, before, page->error);
    if (!code)
        code = whole_write(&to->file, page_style, page->error);
    if (!code)
        code = whole_write(&to->file, "</style>\n", page->error);
    if (!code)
        code = whole_write(&to->file, page_body, page->error);
    if (!code)
        code = whole_write(&to->file, data, page->error);
    if (!code)
        code = write_data(page, to);
    if (!code)
        code = whole_write(&to->file, "</script>\n<script>\n", page->error);
    if (!code)
        code = whole_write(&to->file, page_script, page->error);
    return code ? code : whole_write(&to->file, "</script>\n</html>\n", page->error);
}

int ifl_page(const struct ifl_page_options *options, struct ifl_error *error)
{
    ifl_assert(options->n_runs > 0);
    struct page page = {.options = options, .error = error};
    struct writing to = {.error = error};
    int code = open_runs(&page);
    if (!code)
        code = put_all(&page);
    if (!code)
        code = whole_open(&to.file, options->out_path, error);
    if (!code)
        code = whole_finish(&to.file, write_page(&page, &to), error);
    close_runs(&page);
    return code;
}
