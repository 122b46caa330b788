/* How much memory this process may still take on the host. Linux overcommits: an allocation beyond
 * the machine's memory succeeds, and a process is killed when its pages are touched. */
#ifndef GPU_HOST_MEMORY_H
#define GPU_HOST_MEMORY_H

struct host_memory {
    double all_bytes;  /* the machine's, or the least limit of a control group of this process */
    double free_bytes; /* the part available without swapping: page caches count as free */
};

/* From root/proc and root/sys/fs/cgroup; `root` is "" on a machine. Where MemAvailable cannot be
 * read, free is what sysconf says. Control groups: version 2 (memory.max, memory.current) and
 * version 1 (memory.limit_in_bytes, memory.usage_in_bytes), each with its ancestors; see the
 * kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst. */
void host_memory_read(const char *root, struct host_memory *memory);

#endif
