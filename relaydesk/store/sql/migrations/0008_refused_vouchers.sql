-- Why a target refused a voucher (a code of the ledger's refusals), and when it was redeemed or refused.
ALTER TABLE paid_vouchers ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE paid_vouchers ADD COLUMN ended_ms INTEGER NOT NULL DEFAULT 0;
