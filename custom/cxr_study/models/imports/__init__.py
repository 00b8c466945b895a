"""Classes of a trained model in a hospital's own: by column, by a second body, or fitted anew."""
