/*
 * disk.h - a disk that remembers in which order it was written, and what had been flushed when.
 *
 * It stands below the store's own VFS as the default one, passes everything on to the system's, and
 * writes down each write, cut, flush, making and removing of a file in one directory, with the
 * bytes. From that trace image.h makes what could be found after a loss of power at any point.
 *
 * Flushes never reach the hardware: what is durable is decided here (fsync() and fdatasync() of
 * this program do nothing but write down those of the directory).
 *
 * Threads: any may use files; everything below is the test's own thread's.
 */
#ifndef IDEM_TEST_POWER_DISK_H
#define IDEM_TEST_POWER_DISK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_INODES_MAX 256
#define DISK_NAME_MAX   32

enum disk_op_kind {
    DISK_WRITE,
    DISK_CUT,
    DISK_MAKE,
    DISK_REMOVE,
    DISK_RENAME,          /* Over whatever had the name. */
    DISK_FLUSH,           /* Of one file; stands where it ended. */
    DISK_FLUSH_FAILED,    /* What was pending is forgotten: later flushes do not write it either. */
    DISK_FLUSH_DIRECTORY, /* Names. */
};

struct disk_op {
    enum disk_op_kind kind;
    size_t inode;
    uint64_t offset; /* WRITE; CUT: the new size. */
    size_t size;
    uint8_t *bytes;
    size_t durable_at; /* The flush that made it durable; SIZE_MAX: none yet. */
    bool forgotten;
    char name[DISK_NAME_MAX]; /* MAKE, REMOVE; RENAME: the new one. */
};

struct disk_inode {
    char name[DISK_NAME_MAX];       /* Now; empty: none any more. */
    char first_name[DISK_NAME_MAX]; /* When the trace began, or it was made. */
    unsigned failures;              /* Of flushes. */
    bool stranger; /* No VFS writes it: seen whole, when it is flushed or renamed. */
    bool at_start; /* It and its name were durable when the trace began. */
    uint8_t *bytes;
    size_t size;
    size_t pending_from; /* Before it every operation on this file is durable or forgotten. */
};

struct disk_trace {
    char directory[128];
    struct disk_inode inodes[DISK_INODES_MAX];
    size_t inode_count;
    struct disk_op *ops;
    size_t op_count;
    size_t op_max;
    size_t names_pending_from;
};

/* What goes wrong at the n-th write or flush from now on. */
enum disk_fault {
    DISK_FAULT_NONE,
    DISK_FAULT_FULL,       /* This write is cut short, and all later ones fail, until it ends. */
    DISK_FAULT_WRITE,      /* This write fails. */
    DISK_FAULT_FLUSH_ONCE, /* This flush fails, loses its data, and all later ones "succeed". */
    DISK_FAULT_FLUSH,      /* This one and all later ones. */
};

/* As SQLite's default, once a process, before the store is used. */
void disk_install(void);

/* Begins a trace of a directory, whose content is durable. The trace is the caller's, and empty. */
void disk_begin(struct disk_trace *trace, const char *directory);
void disk_end(void);
void disk_trace_deinit(struct disk_trace *trace);

/* How many operations the trace has: the point to which it has come. */
size_t disk_point(void);

/* NONE ends it. */
void disk_fault_set(enum disk_fault fault, unsigned at);
bool disk_fault_fired(void);

/* `act` is called by `thread` when it is at its n-th write, cut or flush from now on. */
void disk_between_set(pthread_t thread, unsigned at, void (*act)(void *context), void *context);
void disk_between_clear(void);
bool disk_between_reached(void);

#endif /* IDEM_TEST_POWER_DISK_H */
