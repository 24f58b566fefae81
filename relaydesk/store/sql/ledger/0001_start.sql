-- The target's own books: a file of its own, synced at every commit. Amounts are integer microunits.

-- What a payer may spend and what is held of it for open tickets. head is the newest row's hash.
CREATE TABLE accounts (
    address TEXT PRIMARY KEY,
    balance INTEGER NOT NULL CHECK (balance >= 0),
    held INTEGER NOT NULL CHECK (held >= 0),
    spent INTEGER NOT NULL CHECK (spent >= 0),
    seq INTEGER NOT NULL CHECK (seq >= 0),
    head TEXT NOT NULL CHECK (length(head) = 64)
) STRICT, WITHOUT ROWID;

-- Why. record is the JSON of what signer signed (core/ledger/records.py). Nothing in here is ever changed.
CREATE TABLE rows (
    account TEXT NOT NULL REFERENCES accounts (address),
    seq INTEGER NOT NULL CHECK (seq > 0),
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    tx_id TEXT NOT NULL,
    balance_change INTEGER NOT NULL,
    held_change INTEGER NOT NULL,
    earned INTEGER NOT NULL CHECK (earned >= 0),
    fee INTEGER NOT NULL CHECK (fee >= 0),
    issued INTEGER NOT NULL CHECK (issued >= 0),
    balance INTEGER NOT NULL CHECK (balance >= 0),
    held INTEGER NOT NULL CHECK (held >= 0),
    record BLOB NOT NULL,
    signer TEXT NOT NULL,
    sig TEXT NOT NULL,
    prev TEXT NOT NULL CHECK (length(prev) = 64),
    hash TEXT NOT NULL CHECK (length(hash) = 64),
    PRIMARY KEY (account, seq),
    CHECK (balance_change + held_change + earned + fee = issued)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER rows_stay BEFORE UPDATE ON rows BEGIN
    SELECT RAISE (ABORT, 'a row of the ledger is never changed');
END;
CREATE TRIGGER rows_remain BEFORE DELETE ON rows BEGIN
    SELECT RAISE (ABORT, 'a row of the ledger is never deleted');
END;

-- Tickets by transaction. ticket is the JSON of core/ledger/ticket.py's Ticket; the rest is what is searched.
CREATE TABLE tickets (
    tx_id TEXT PRIMARY KEY,
    ticket_id TEXT NOT NULL UNIQUE,
    payer TEXT NOT NULL,
    model TEXT NOT NULL,
    state TEXT NOT NULL,
    held INTEGER NOT NULL CHECK (held >= 0),
    amount INTEGER NOT NULL CHECK (amount >= 0),
    fee INTEGER NOT NULL CHECK (fee >= 0),
    max_price INTEGER NOT NULL CHECK (max_price >= 0),
    ended_ms INTEGER NOT NULL,
    ticket BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tickets_live ON tickets (state) WHERE state IN ('open', 'pending_settle', 'frozen');
CREATE INDEX tickets_free ON tickets (ended_ms) WHERE payer = '';

-- Vouchers by the hash of their code; the code is nowhere. payer is empty until one is redeemed.
CREATE TABLE vouchers (
    voucher TEXT PRIMARY KEY CHECK (length(voucher) = 64),
    amount INTEGER NOT NULL CHECK (amount > 0),
    issued_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    note TEXT NOT NULL,
    signer TEXT NOT NULL,
    sig TEXT NOT NULL,
    payer TEXT NOT NULL DEFAULT '',
    redeemed_ms INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX vouchers_payer ON vouchers (payer);

-- Sums of all rows, one line, and what models earned by the day (days since 1970, UTC) on which tickets ended:
-- so that nobody who looks has to read every row.
CREATE TABLE sums (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    issued INTEGER NOT NULL,
    earned INTEGER NOT NULL,
    fees INTEGER NOT NULL
) STRICT;
INSERT INTO sums VALUES (1, 0, 0, 0);
CREATE TABLE earnings (
    day INTEGER NOT NULL,
    model TEXT NOT NULL,
    tickets INTEGER NOT NULL,
    earned INTEGER NOT NULL,
    refunded INTEGER NOT NULL,
    PRIMARY KEY (day, model)
) STRICT, WITHOUT ROWID;
