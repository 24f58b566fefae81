-- What this node opened as a payer, by transaction. operator and node are unsigned 64-bit, so text. ticket is
-- the JSON of core/ledger/paid.py's PaidTicket; state says whether something waits to be told to the target.
CREATE TABLE paid_tickets (
    tx_id TEXT PRIMARY KEY,
    operator TEXT NOT NULL,
    node TEXT NOT NULL,
    state TEXT NOT NULL,
    opened_ms INTEGER NOT NULL,
    ticket BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX paid_tickets_state ON paid_tickets (operator, node, state, opened_ms);

-- How our account at a target stood when it last told us. Amounts are integer microunits.
CREATE TABLE paid_accounts (
    operator TEXT NOT NULL,
    node TEXT NOT NULL,
    payer TEXT NOT NULL,
    balance INTEGER NOT NULL,
    held INTEGER NOT NULL,
    told_ms INTEGER NOT NULL,
    PRIMARY KEY (operator, node)
) STRICT, WITHOUT ROWID;

-- Vouchers by the hash of their code; the code is among the secrets until its target has taken it.
CREATE TABLE paid_vouchers (
    voucher TEXT PRIMARY KEY CHECK (length(voucher) = 64),
    operator TEXT NOT NULL,
    node TEXT NOT NULL,
    state TEXT NOT NULL,
    amount INTEGER NOT NULL,
    added_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX paid_vouchers_state ON paid_vouchers (operator, node, state);
