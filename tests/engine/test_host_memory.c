/* Memory that a process may still take, from made-up /proc and /sys/fs/cgroup; sums are by hand. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_memory.h"

static char root[64];
static const double MIB = 1048576;

/* Writes a file at `path` below the root and makes its folders. */
static void put(const char *path, const char *text)
{
    char command[512], file[256];
    snprintf(file, sizeof file, "%s/%s", root, path);
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\"", file);
    cr_assert_eq(system(command), 0);
    FILE *out = fopen(file, "w");
    cr_assert(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

static void make_root(void)
{
    snprintf(root, sizeof root, "/tmp/inflight-host-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
    put("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:          524288 kB\n"
                        "MemAvailable:    4194304 kB\nBuffers: 1 kB\n");
}

static void remove_root(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0);
}

static void expect(double all_mib, double free_mib)
{
    struct host_memory memory;
    host_memory_read(root, &memory);
    cr_expect(memory.all_bytes == all_mib * MIB && memory.free_bytes == free_mib * MIB,
              "%g and %g MiB, expected %g and %g", memory.all_bytes / MIB, memory.free_bytes / MIB,
              all_mib, free_mib);
}

TestSuite(host_memory, .init = make_root, .fini = remove_root);

/* MemAvailable, not MemFree: Linux can drop its caches. */
Test(host_memory, a_machine_without_groups)
{
    expect(8192, 4096);
}

/* 1024 of which 512 are used, 128 of these by caches: 640 are left. */
Test(host_memory, a_group_of_version_2)
{
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/memory.max", "1073741824\n");
    put("sys/fs/cgroup/a/b/memory.current", "536870912\n");
    put("sys/fs/cgroup/a/b/memory.stat",
        "anon 402653184\ninactive_file 67108864\nactive_file 67108864\n");
    expect(1024, 640);
    put("sys/fs/cgroup/a/memory.max", "max\n");
    put("sys/fs/cgroup/a/memory.current", "7516192768\n");
    expect(1024, 640);
}

/* The parent's limit is 768, 512 are used: 256 are left. */
Test(host_memory, a_group_within_a_smaller_one)
{
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/memory.max", "1073741824\n");
    put("sys/fs/cgroup/a/b/memory.current", "0\n");
    put("sys/fs/cgroup/a/memory.max", "805306368\n");
    put("sys/fs/cgroup/a/memory.current", "536870912\n");
    expect(768, 256);
}

Test(host_memory, a_group_of_version_1)
{
    put("proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/docker/1\n0::/y\n");
    put("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "1073741824\n");
    put("sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes", "268435456\n");
    put("sys/fs/cgroup/memory/docker/1/memory.stat",
        "inactive_file 1\ntotal_inactive_file 67108864\ntotal_active_file 0\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    expect(1024, 832);
}

/* In a container the path is that of the host, and the mount the container's own group. */
Test(host_memory, a_container_whose_path_is_elsewhere)
{
    put("proc/self/cgroup", "4:memory:/docker/1\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n");
    expect(2048, 1024);
}

/* More is used than the limit allows: nothing is left. */
Test(host_memory, a_group_that_is_full)
{
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/memory.max", "1048576\n");
    put("sys/fs/cgroup/memory.current", "2097152\n");
    expect(1, 0);
}

Test(host_memory, this_machine_has_some)
{
    struct host_memory memory;
    host_memory_read("", &memory);
    cr_expect(memory.all_bytes > 0 && memory.free_bytes > 0 &&
              memory.free_bytes <= memory.all_bytes);
}
