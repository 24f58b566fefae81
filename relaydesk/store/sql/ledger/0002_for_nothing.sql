-- What nobody paid for is found by its end, whoever signed for it.
DROP INDEX tickets_free;
CREATE INDEX tickets_for_nothing ON tickets (ended_ms) WHERE amount = 0 AND fee = 0 AND ended_ms > 0;
