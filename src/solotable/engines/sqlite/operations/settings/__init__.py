"""Operations on the settings of tables and of the account."""
