/* The cache of profiles: a file is read once, and each call gets its own copy. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "run/profile_shelf.h"

static void write_model(char path[40], int layers)
{
    snprintf(path, 40, "/tmp/inflight-model-XXXXXX");
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    FILE *out = fdopen(fd, "w");
    fprintf(out,
            "about: a test\nlayers: %d\nd_model: 64\nn_q_heads: 4\nd_ffn: 128\nvocab: 100\n"
            "max_model_len: 256\n",
            layers);
    fclose(out);
}

Test(profile_shelf, a_file_that_is_gone_is_still_there)
{
    struct profile_shelf shelf;
    struct model model;
    struct ifl_error error;
    char path[40];
    write_model(path, 7);
    profile_shelf_init(&shelf);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(profile_shelf_model(&shelf, path, &model, &error), 0, "%s", error.text);
        cr_expect_eq(model.layers, 7);
        model.layers = 99;
        unlink(path);
    }
    profile_shelf_finish(&shelf);
}

Test(profile_shelf, a_model_and_a_hardware_of_one_name_are_two)
{
    struct profile_shelf shelf;
    struct model model;
    struct platform platform;
    struct ifl_error error;
    char path[40];
    write_model(path, 7);
    profile_shelf_init(&shelf);
    cr_expect_eq(profile_shelf_model(&shelf, path, &model, &error), 0);
    cr_expect_lt(profile_shelf_hardware(&shelf, path, &platform, &error), 0);
    cr_assert_eq(profile_shelf_hardware(&shelf, "h100-sxm", &platform, &error), 0, "%s",
                 error.text);
    cr_expect_eq(platform.hardware.gpu.n_sms, 132);
    profile_shelf_finish(&shelf);
    unlink(path);
}

Test(profile_shelf, the_one_used_longest_ago_goes)
{
    struct profile_shelf shelf;
    struct model model;
    struct ifl_error error;
    char path[SHELF_PROFILES + 1][40];
    profile_shelf_init(&shelf);
    for (int i = 0; i <= SHELF_PROFILES; i++) {
        write_model(path[i], i + 1);
        cr_assert_eq(profile_shelf_model(&shelf, path[i], &model, &error), 0);
        cr_assert_eq(profile_shelf_model(&shelf, path[0], &model, &error), 0);
        cr_expect_eq(model.layers, 1);
    }
    for (int i = 0; i <= SHELF_PROFILES; i++)
        unlink(path[i]);
    cr_expect_eq(profile_shelf_model(&shelf, path[0], &model, &error), 0);
    cr_expect_lt(profile_shelf_model(&shelf, path[1], &model, &error), 0);
    cr_assert_eq(profile_shelf_model(&shelf, path[2], &model, &error), 0);
    cr_expect_eq(model.layers, 3);
    profile_shelf_finish(&shelf);
}
