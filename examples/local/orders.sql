-- The business table of the examples; whoever may call idem's functions may place orders.
CREATE TABLE IF NOT EXISTS public.orders (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    item text NOT NULL,
    placed timestamptz NOT NULL DEFAULT now()
);
GRANT SELECT, INSERT ON public.orders TO idem_caller;
