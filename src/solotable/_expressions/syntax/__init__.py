"""Expression text to bound trees: lex, parse, bind."""
