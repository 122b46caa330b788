#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "fit/where.h"

static char path[64];

static void write_file(const char *stem, const char *text)
{
    snprintf(path, sizeof path, "/tmp/%s-%ld.csv", stem, (long)getpid());
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static void expect_failure(const char *stem, const char *text, int line, int column,
                           const char *words)
{
    struct fit_data data;
    struct ifl_error error = {0};
    write_file(stem, text);
    const char *const paths[] = {path};
    cr_assert_eq(fit_data_read(paths, 1, &data, &error), IFL_E_INPUT, "%s was read", stem);
    remove(path);
    cr_expect_eq(error.line, line, "%s: line %d", stem, error.line);
    cr_expect_eq(error.column, column, "%s: column %d", stem, error.column);
    cr_expect_not_null(strstr(error.text, words), "%s: %s", stem, error.text);
}

static const char gemm_header[] = "gemm_dtype,kernel_source,m,n,k,latency\n";

Test(table, bad_input_is_blamed_on_its_place)
{
    char text[256];
    expect_failure("fit-strange", "a,b\n1,2\n", 1, 0, "no known table");
    expect_failure("fit-header", gemm_header, 0, 0, "no rows");
    snprintf(text, sizeof text, "%sbfloat16,x,1,2,3\n", gemm_header);
    expect_failure("fit-ragged", text, 2, 0, "5 cells, expected 6");
    snprintf(text, sizeof text, "# a remark\n%s\nbfloat16,x,1,many,3,0.5\n", gemm_header);
    expect_failure("fit-word", text, 4, 14, "n is \"many\", expected a number from 1");
    snprintf(text, sizeof text, "%sbfloat16,x,1,2,3,-0.5\n", gemm_header);
    expect_failure("fit-negative", text, 2, 18, "latency is \"-0.5\"");
    snprintf(text, sizeof text, "%sbfloat16,x,1,2,3,nan\n", gemm_header);
    expect_failure("fit-nan", text, 2, 18, "latency is \"nan\"");
    snprintf(text, sizeof text, "%s\"bfloat16,x,1,2,3,1\n", gemm_header);
    expect_failure("fit-quote", text, 2, 0, "quote");
}

/* A NUL in a text, and plain text behind a gzip stream, are errors and not dropped silently. */
Test(table, nothing_is_lost)
{
    struct fit_data data;
    struct ifl_error error = {0};
    const char *const paths[] = {path};
    write_file("fit-nul", gemm_header);
    FILE *file = fopen(path, "a");
    fwrite("bfloat16,x,1,2,3,1\0,4\n", 1, 22, file);
    cr_assert_eq(fclose(file), 0);
    cr_expect_eq(fit_data_read(paths, 1, &data, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "a line with a NUL character, expected text");
    cr_expect_eq(error.line, 2);
    gzFile packed = gzopen(path, "wb");
    gzputs(packed, gemm_header);
    gzputs(packed, "bfloat16,x,1,2,3,1\n");
    cr_assert_eq(gzclose(packed), Z_OK);
    file = fopen(path, "a");
    fputs("bfloat16,x,2,2,3,1\n", file);
    cr_assert_eq(fclose(file), 0);
    cr_expect_eq(fit_data_read(paths, 1, &data, &error), IFL_E_INPUT);
    cr_expect(strstr(error.text, "and what follows is none, expected"), "%s", error.text);
    remove(path);
}

/* Lines that lie across the reader's buffer of 64 KiB, and a last one without its newline. */
Test(table, lines_of_any_length_up_to_the_limit)
{
    struct table table;
    struct ifl_error error = {0};
    for (int n_rows = 3600; n_rows < 3620; n_rows++) { /* of 18 bytes and more */
        write_file("fit-long", gemm_header);
        FILE *file = fopen(path, "a");
        for (int i = 0; i < n_rows; i++)
            fprintf(file, "bfloat16,x,%d,2,3,1%s", i, i + 1 < n_rows ? "\n" : "");
        cr_assert_eq(fclose(file), 0);
        cr_assert_eq(table_read(path, &table, &error), 0, "%s", error.text);
        cr_expect_eq(table.n_rows, (size_t)n_rows);
        cr_expect_eq(atoi(table_cell(&table, (size_t)n_rows - 1, 2)), n_rows - 1);
        table_free(&table);
    }
    write_file("fit-long", gemm_header);
    FILE *file = fopen(path, "a");
    for (int i = 0; i < 1 << 16; i++)
        putc('x', file);
    cr_assert_eq(fclose(file), 0);
    cr_expect_eq(table_read(path, &table, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "a line of more than 65536 bytes");
    cr_expect_eq(error.line, 2);
    remove(path);
}

Test(table, a_missing_or_broken_file)
{
    struct fit_data data;
    struct ifl_error error = {0};
    const char *const nowhere[] = {"/tmp/no/such/table.csv"};
    cr_expect_eq(fit_data_read(nowhere, 1, &data, &error), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "cannot open"));
    cr_expect_eq(fit_data_read(nowhere, 0, &data, &error), IFL_E_INPUT);

    unsigned char bytes[40] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff};
    snprintf(path, sizeof path, "/tmp/fit-broken-%ld.csv.gz", (long)getpid());
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
    cr_assert_eq(fclose(file), 0);
    const char *const broken[] = {path};
    cr_expect_eq(fit_data_read(broken, 1, &data, &error), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "cannot decompress"), "%s", error.text);
    remove(path);
}

/* Elements of two bytes, milliseconds, whole prompts, and a context that ends before the token. */
Test(table, units_of_the_adapters)
{
    struct fit_data data;
    struct ifl_error error = {0};
    write_file("fit-all_reduce", "kernel_source,allreduce_dtype,num_gpus,message_size,latency\n"
                                 "vLLM_custom_graph,bfloat16,4,1024,0.5\n"
                                 "vLLM_custom_eager,bfloat16,8,1024,0.5\n"
                                 "vLLM_custom_eager,bfloat16,3,1024,0.5\n");
    const char *const paths[] = {path};
    cr_assert_eq(fit_data_read(paths, 1, &data, &error), 0, "%s", error.text);
    remove(path);
    cr_expect_eq(data.samples[0].op, FIT_ALLREDUCE_4);
    cr_expect_eq(data.samples[1].op, FIT_ALLREDUCE_8_EAGER);
    cr_expect_eq(data.samples[2].op, FIT_NONE);
    cr_expect_eq(data.samples[0].bytes, 2048);
    cr_expect_float_eq(data.samples[0].measured_s, 0.5e-3, 1e-12);
    fit_data_free(&data);

    write_file("fit-step", "kernel_source,attn_dtype,kv_cache_dtype,batch_size,step,num_heads,"
                           "num_key_value_heads,head_dim,latency\n"
                           "fa,bfloat16,bfloat16,3,127,8,2,128,0.012\n"
                           "fa,bfloat16,fp8,3,127,8,2,128,0.012\n");
    cr_assert_eq(fit_data_read(paths, 1, &data, &error), 0, "%s", error.text);
    remove(path);
    cr_expect_eq(data.samples[0].op, FIT_DECODE);
    cr_expect_eq(data.samples[0].n_seqs, 3);
    cr_expect_eq(data.samples[0].context_tokens, 127);
    cr_expect_str_eq(data.samples[0].group, "8/2");
    cr_expect_eq(data.samples[1].op, FIT_NONE);
    fit_data_free(&data);
}

static size_t kept(const char *condition)
{
    struct fit_data data;
    struct ifl_error error = {0};
    size_t n = 0;
    const char *const paths[] = {path};
    cr_assert_eq(fit_data_read(paths, 1, &data, &error), 0, "%s", error.text);
    cr_assert_eq(where_keep(&data, &condition, 1, &error), 0, "%s", error.text);
    for (size_t i = 0; i < data.n; i++)
        n += data.samples[i].op != FIT_NONE;
    fit_data_free(&data);
    return n;
}

Test(table, conditions)
{
    char text[256];
    snprintf(text, sizeof text, "%sbfloat16,x,1,2,3,1\nbfloat16,x,2,2,3,1\nbfloat16,x,3,2,3,1\n",
             gemm_header);
    write_file("fit-where", text);
    cr_expect_eq(kept("m<2"), 1);
    cr_expect_eq(kept("m<=2"), 2);
    cr_expect_eq(kept("m>2"), 1);
    cr_expect_eq(kept("m>=2"), 2);
    cr_expect_eq(kept("m=2"), 1);
    cr_expect_eq(kept("m!=n"), 2);
    cr_expect_eq(kept("m<n"), 1);

    struct fit_data data;
    struct ifl_error error = {0};
    const char *const paths[] = {path}, *const wrong[] = {"m~2", "q<3", "<3", "m<"};
    cr_assert_eq(fit_data_read(paths, 1, &data, &error), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_eq(where_keep(&data, &wrong[i], 1, &error), IFL_E_INPUT, "%s", wrong[i]);
    fit_data_free(&data);
    remove(path);
}

/* One size below two rows, two below four, three below eight: 12 rows, 4 of them for each octave.
 */
Test(table, octaves_of_products_can_count_the_same)
{
    char text[512] = "";
    struct fit_data data;
    struct ifl_error error = {0};
    const int m[] = {1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 4};
    strcat(text, gemm_header);
    for (size_t i = 0; i < sizeof m / sizeof *m; i++)
        sprintf(text + strlen(text), "bfloat16,torch,%d,512,512,0.01\n", m[i]);
    write_file("fit-octaves", text);
    const char *const paths[] = {path};
    cr_assert_eq(fit_data_read(paths, 1, &data, &error), 0, "%s", error.text);
    remove(path);
    fit_data_even_octaves(&data);
    double sum[3] = {0};
    for (size_t i = 0; i < data.n; i++)
        sum[m[i] < 2 ? 0 : m[i] < 4 ? 1 : 2] += data.samples[i].weight;
    for (int i = 0; i < 3; i++)
        cr_expect_float_eq(sum[i], 4, 1e-12, "octave %d counts %g rows, not 4", i, sum[i]);
    fit_data_free(&data);
}
