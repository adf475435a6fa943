"""Questions of naive Bayes over sites that hold columns of the same records."""
