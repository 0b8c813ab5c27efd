//! The numbers that tables have in the database.

use quarterdeck_contracts::Table;

/// A table's number never changes and is never given to another: rows are kept under it.
pub(super) fn number(table: Table) -> i16 {
    match table {
        Table::History => 1,
        Table::Sessions => 2,
        Table::Calls => 3,
        Table::Confirmations => 4,
        Table::SessionConfirmations => 5,
        Table::Tasks => 6,
        Table::Blocks => 7,
        Table::Rates => 8,
        Table::Values => 9,
        Table::Calendar => 10,
        Table::Files => 11,
        Table::Audit => 12,
        Table::Outbox => 13,
        Table::Versions => 14,
        Table::Nodes => 15,
        Table::Leases => 16,
        Table::Bundles => 17,
        Table::Tickets => 18,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_tables_share_a_number() {
        let numbers: BTreeSet<i16> = Table::ALL.into_iter().map(number).collect();
        assert_eq!(numbers.len(), Table::ALL.len());
    }
}
