/*
 * callback_scene.h - one entry that listens, and events that are signed for it.
 *
 * The signature is made here of HMAC alone and not with any code of the adapters'.
 */
#ifndef IDEM_TEST_UNIT_PROVIDER_CALLBACK_SCENE_H
#define IDEM_TEST_UNIT_PROVIDER_CALLBACK_SCENE_H

#include "core/rules.h"
#include "provider/adapter.h"
#include "provider/http_port.h"

#define SCENE_NOW_S INT64_C(1764400000)

#define SCENE_CHARGE    "c0123456789abcdefghjkmnpqrs"
#define SCENE_AUTHORIZE "a0123456789abcdefghjkmnpqrs"
#define SCENE_CAPTURE   "k0123456789abcdefghjkmnpqrs"
#define SCENE_CANCEL    "v0123456789abcdefghjkmnpqrs"
#define SCENE_REFUND    "r0123456789abcdefghjkmnpqrs"

struct callback_scene {
    const char *field_name; /* Of the signature. */
    struct idem_provider_rules rules;
    struct idem_callback_secrets secrets; /* "secret-one" alone. */
    struct idem_provider_entry entry;     /* "e-1", account "acct_1", region "eu". */
    struct idem_callback_reader *reader;
    const char *field_said;     /* The name that the head's field has. */
    char field_memory[512];     /* Its value; terminated. */
    struct idem_callback event; /* What was read last. */
};

void callback_scene_open(struct callback_scene *scene,
                         const struct idem_adapter *adapter,
                         const char *field_name);
void callback_scene_close(struct callback_scene *scene);

/* Makes the field: signed with `secret` at `signed_s`. */
void callback_scene_sign(struct callback_scene *scene,
                         const char *secret,
                         int64_t signed_s,
                         struct idem_str body);

/* Reads it at SCENE_NOW_S, as it is signed. */
enum idem_callback_verdict callback_scene_read(struct callback_scene *scene, struct idem_str body);

/* Signs well, and reads. */
enum idem_callback_verdict callback_scene_tell(struct callback_scene *scene, const char *body);

/*
 * The evidence in one line: "SUCCESS id 100.00 EUR ref=.. order=.. payment=.. account=.. code=..
 * message=.. event=.. at=SECONDS", without what is empty or the entry's own.
 */
void callback_scene_describe(const struct callback_scene *scene, struct idem_buf *buf);

#endif /* IDEM_TEST_UNIT_PROVIDER_CALLBACK_SCENE_H */
