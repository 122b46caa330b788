/* Files that were read are told apart from all others by what they are, not by how they are called.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inflight/inputs.h"

static void enter_folder(void)
{
    char dir[] = "/tmp/inflight-inputs-XXXXXX";
    cr_assert_not_null(mkdtemp(dir));
    cr_assert_eq(chdir(dir), 0);
}

static void make(const char *path)
{
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    cr_assert_eq(fclose(file), 0);
}

static void expect_free(const char *path)
{
    struct ifl_error error = {0};
    cr_expect_eq(ifl_output_check(path, &error), 0, "%s: %s", path, error.text);
}

static void expect_taken(const char *path, const char *by)
{
    struct ifl_error error = {0};
    cr_expect_eq(ifl_output_check(path, &error), IFL_E_INPUT, "%s", path);
    cr_expect_str_eq(error.file, path);
    cr_expect_not_null(strstr(error.text, by), "%s", error.text);
}

Test(inputs, by_any_name, .init = enter_folder)
{
    make("read");
    make("other");
    expect_free("read");
    ifl_input_note("./read");
    cr_assert_eq(mkdir("folder", 0777), 0);
    cr_assert_eq(symlink("../read", "folder/soft"), 0);
    cr_assert_eq(link("read", "folder/hard"), 0);
    expect_taken("read", "the input ./read,");
    expect_taken("folder/../read", "the input ./read,");
    expect_taken("folder/soft", "the input ./read,");
    expect_taken("folder/hard", "the input ./read,");
    expect_free("other");
    expect_free("nothing");
    ifl_input_note("folder/hard"); /* the first name stays */
    expect_taken("read", "the input ./read,");
}

Test(inputs, many, .init = enter_folder)
{
    char name[16];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "%d", i);
        make(name);
        if (i % 2)
            ifl_input_note(name);
    }
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "%d", i);
        (i % 2 ? expect_taken(name, name) : expect_free(name));
    }
}

/* A folder, a device and a file that is not there have nothing to lose. */
Test(inputs, have_content, .init = enter_folder)
{
    ifl_input_note("nothing");
    ifl_input_note("/dev/null");
    ifl_input_note(".");
    make("nothing");
    expect_free("nothing");
    expect_free("/dev/null");
    expect_free(".");
}

/* The file that was read has another name now; what stands under its old one is another file. */
Test(inputs, move, .init = enter_folder)
{
    make("read");
    ifl_input_note("read");
    cr_assert_eq(rename("read", "moved"), 0);
    make("read");
    expect_free("read");
    expect_taken("moved", "the input read,");
}
