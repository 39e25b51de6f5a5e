/*
 * scene_internal.h - how a scene finds its rows; for the scene's own files.
 */
#ifndef IDEM_TEST_UNIT_CORE_SCENE_INTERNAL_H
#define IDEM_TEST_UNIT_CORE_SCENE_INTERNAL_H

#include "unit/core/scene.h"

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

/* The facts of a command. */
void scene_fetch(struct scene *scene, const struct idem_command *command, struct idem_facts *facts);

#endif /* IDEM_TEST_UNIT_CORE_SCENE_INTERNAL_H */
