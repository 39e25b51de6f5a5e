/*
 * client_scene.h - a client with a journal of its own, a peer that misbehaves, and a clock that can
 * be moved.
 */
#ifndef IDEM_TEST_UNIT_CLIENT_CLIENT_SCENE_H
#define IDEM_TEST_UNIT_CLIENT_CLIENT_SCENE_H

#include <ftw.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/client_internal.h"
#include "idem/client.h"
#include "lib/test.h"
#include "unit/transport/peer.h"

struct moved_clock {
    struct idem_clock clock;
    struct idem_clock system;
    int64_t wall_ahead_us;
    int64_t mono_ahead_us;
};

struct scene {
    char directory[64];
    char journal[96];
    char url[64];
    struct peer *peer;
    struct moved_clock clock;
    struct idem_client *client;
    struct idem_client_error error;
};

static inline int64_t moved_wall_us(struct idem_clock *clock)
{
    struct moved_clock *moved = IDEM_CONTAINER_OF(clock, struct moved_clock, clock);
    return idem_clock_wall_us(&moved->system) + moved->wall_ahead_us;
}

static inline int64_t moved_mono_us(struct idem_clock *clock)
{
    struct moved_clock *moved = IDEM_CONTAINER_OF(clock, struct moved_clock, clock);
    return idem_clock_mono_us(&moved->system) + moved->mono_ahead_us;
}

static const struct idem_clock_ops moved_ops = { .wall_us = moved_wall_us,
                                                 .mono_us = moved_mono_us };

static inline void client_open(struct scene *scene)
{
    const struct idem_client_options options = {
        .size = sizeof(options),
        .journal = scene->journal,
        .backoff_first_ms = 20,
        .backoff_max_ms = 100,
        .connect_timeout_ms = 500,
    };
    enum idem_client_err err =
        idem_client_open_with(&options, &scene->clock.clock, NULL, &scene->client, &scene->error);
    if (err != IDEM_CLIENT_OK) {
        print_error("%s\n", scene->error.text);
    }
    assert_int_equal(err, IDEM_CLIENT_OK);
}

static inline int set_up(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    assert_non_null(scene);
    (void)snprintf(scene->directory, sizeof(scene->directory), "/tmp/idem-client-XXXXXX");
    assert_non_null(mkdtemp(scene->directory));
    (void)snprintf(scene->journal, sizeof(scene->journal), "%s/journal", scene->directory);
    scene->peer = peer_start();
    scene->clock.clock.ops = &moved_ops;
    idem_clock_init_system(&scene->clock.system);
    client_open(scene);
    *state = scene;
    return 0;
}

static inline int entry_remove(const char *path,
                               const struct stat *status,
                               int kind,
                               struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static inline int tear_down(void **state)
{
    struct scene *scene = *state;
    idem_client_close(scene->client);
    peer_stop(scene->peer);
    (void)nftw(scene->directory, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
    free(scene);
    return 0;
}

static inline const char *url_of(struct scene *scene, const char *path)
{
    (void)snprintf(scene->url, sizeof(scene->url), "http://127.0.0.1:%u%s", peer_port(scene->peer),
                   path);
    return scene->url;
}

static inline struct idem_client_request request_of(struct scene *scene,
                                                    const char *name,
                                                    const char *path)
{
    return (struct idem_client_request){
        .size = sizeof(struct idem_client_request),
        .name = name,
        .method = "POST",
        .url = url_of(scene, path),
        .body = "amount=1",
        .body_size = 8,
        .dialect = "ietf",
        .deadline_ms = 1500,
    };
}

static inline struct idem_client_intent *intend(struct scene *scene,
                                                const struct idem_client_request *request)
{
    struct idem_client_intent *intent = NULL;
    enum idem_client_err err = idem_client_intend(scene->client, request, &intent, &scene->error);
    if (err != IDEM_CLIENT_OK) {
        print_error("%s\n", scene->error.text);
    }
    assert_int_equal(err, IDEM_CLIENT_OK);
    return intent;
}

static inline const struct idem_client_verdict *run(struct scene *scene,
                                                    struct idem_client_intent *intent)
{
    assert_int_equal(idem_client_run(intent, &scene->error), IDEM_CLIENT_OK);
    return idem_client_verdict(intent);
}

#endif /* IDEM_TEST_UNIT_CLIENT_CLIENT_SCENE_H */
