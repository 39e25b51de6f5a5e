# Lines to paste while `make run` runs. Again and again: the answers stay the same.

# 1. Pay. A lost connection is no reason to fear: repeat it until it answers.
curl -si http://127.0.0.1:8080/v1/payments \
  -H 'Authorization: Bearer demo-secret' -H 'Idempotency-Key: "key-1001"' \
  -H 'Content-Type: application/json' \
  -d '{"order_no":"1001","amount":"100.00","currency":"CNY","provider":"sandbox",
       "capture":"automatic","method":"tok_ok"}'

# 2. The same again: nobody pays twice. The stored answer comes back, Idempotent-Replayed: true.
curl -si http://127.0.0.1:8080/v1/payments \
  -H 'Authorization: Bearer demo-secret' -H 'Idempotency-Key: "key-1001"' \
  -H 'Content-Type: application/json' \
  -d '{"order_no":"1001","amount":"100.00","currency":"CNY","provider":"sandbox",
       "capture":"automatic","method":"tok_ok"}'

# 3. The same key with another amount: refused (422), nothing happens.
curl -si http://127.0.0.1:8080/v1/payments \
  -H 'Authorization: Bearer demo-secret' -H 'Idempotency-Key: "key-1001"' \
  -H 'Content-Type: application/json' \
  -d '{"order_no":"1001","amount":"999.00","currency":"CNY","provider":"sandbox",
       "capture":"automatic","method":"tok_ok"}'

# 4. The provider executes and its answer is lost: idem asks instead of paying again.
curl -si http://127.0.0.1:8080/v1/payments \
  -H 'Authorization: Bearer demo-secret' -H 'Idempotency-Key: "key-1002"' \
  -H 'Content-Type: application/json' \
  -d '{"order_no":"1002","amount":"25.00","currency":"CNY","provider":"sandbox",
       "capture":"automatic","method":"tok_lose_answer"}'

# 5. The same without waiting: 202 with the operation at once.
curl -si http://127.0.0.1:8080/v1/payments \
  -H 'Authorization: Bearer demo-secret' -H 'Idempotency-Key: "key-1003"' \
  -H 'Content-Type: application/json' -H 'Prefer: respond-async' \
  -d '{"order_no":"1003","amount":"30.00","currency":"CNY","provider":"sandbox",
       "capture":"automatic","method":"tok_lose_answer"}'

# 6. Watch that operation: processing, unknown, succeeded, with every step on its timeline.
curl -si 'http://127.0.0.1:8080/v1/operations?endpoint=payments.create' \
  -H 'Authorization: Bearer demo-secret' -H 'Idempotency-Key: "key-1003"'

# 7. The provider's own books: one execution for each order, however many requests arrived.
curl -s 'http://127.0.0.1:8081/ledger?order_no=1002'
