"""What only so many hosts of the fleet may do at once: numbered keys in Valkey that run out (Q 7.5)."""
