/*
 * scene_internal.h - how a scene finds its rows; for the scene's own files.
 */
#ifndef IDEM_TEST_UNIT_CORE_SCENE_INTERNAL_H
#define IDEM_TEST_UNIT_CORE_SCENE_INTERNAL_H

#include "unit/core/scene.h"

void scene_keep(struct scene *scene, struct idem_str *text); /* Until the scene ends. */

/* NULL: absent. */
struct scene_intent *scene_intent_by_scope(struct scene *scene, const struct idem_scope *scope);
struct idem_stub *scene_stub_by_scope(struct scene *scene, const struct idem_scope *scope);

/* Whoever holds the number; row 0: nobody. */
struct idem_payment scene_order_holder(const struct scene *scene,
                                       struct idem_str principal,
                                       struct idem_str order_no);
struct idem_refund scene_refund_holder(const struct scene *scene,
                                       int64_t payment_row,
                                       struct idem_str refund_no);
struct idem_stub scene_order_stub(const struct scene *scene,
                                  const struct idem_scope *own,
                                  struct idem_str order_no);

/* Somebody is told of what happens to this principal. */
bool scene_is_listened(const struct scene *scene, struct idem_str principal);

/* NULL: it never came. */
struct scene_event *scene_event(struct scene *scene,
                                struct idem_str entry,
                                struct idem_str event_id);

/* Mail: what came, and what is told (scene_mail.c). */
void scene_put_mail(struct scene *scene, const struct idem_decision *decision);

/* What the decision tells is what differs between the rows of the facts and those it writes. */
void scene_expect_told(const struct scene *scene, const struct idem_decision *decision);

/* The facts of a command. */
void scene_fetch(struct scene *scene, const struct idem_command *command, struct idem_facts *facts);

#endif /* IDEM_TEST_UNIT_CORE_SCENE_INTERNAL_H */
