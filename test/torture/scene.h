/*
 * scene.h - what is done while calls fail, and how it is judged.
 */
#ifndef IDEM_TEST_TORTURE_SCENE_H
#define IDEM_TEST_TORTURE_SCENE_H

#include <stddef.h>

struct torture_scene {
    const char *name;
    void (*begin)(void);   /* Once a process: what every run starts from. */
    void (*prepare)(void); /* Before each run; nothing fails. */
    void (*play)(void);    /* What is armed fails. */
    void (*judge)(void);   /* Nothing fails. */
};

extern const struct torture_scene torture_scenes_store[];
extern const struct torture_scene torture_scenes_files[];
extern const struct torture_scene torture_scenes_journal[];
extern const size_t torture_scenes_store_count;
extern const size_t torture_scenes_files_count;
extern const size_t torture_scenes_journal_count;

/* The text of test/unit/store/schema-1.sql; the process's. */
extern const char *torture_schema_1;

#endif /* IDEM_TEST_TORTURE_SCENE_H */
